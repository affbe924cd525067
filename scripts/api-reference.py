#!/usr/bin/env python3
"""api-reference.py HAPAX >docs/api-reference.md : what the program says about its API, as a page for people.

It serves itself for a moment, on an empty store, and is asked for /api/v1/openapi.json. Everything on the page comes from there;
what any call may answer is said once, at the top. `make reference` does this, and tests/http/test_openapi.sh fails when the
page is behind.
"""
import collections
import json
import os
import subprocess
import sys
import urllib.request


def ask_program(program):
    environment = {name: value for name, value in os.environ.items() if not name.startswith("HAPAX_")}
    command = [program, "serve", "--db", "sqlite::memory:", "--listen", "127.0.0.1:0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=environment, text=True) as server:
        try:
            url = server.stdout.readline().removeprefix("ready ").strip()
            with urllib.request.urlopen(f"{url}/api/v1/openapi.json") as reply:
                return json.load(reply)
        finally:
            server.terminate()


document = ask_program(sys.argv[1])
schemas = document["components"]["schemas"]
operations = [(method.upper(), path, operation)
              for path, item in document["paths"].items() for method, operation in item.items()]


def name_of(schema):
    return schema["$ref"].rsplit("/", 1)[1] if "$ref" in schema else None


def is_object(name):
    """Has it members, so that it gets a section of its own?"""
    schema = schemas[name]
    return bool(schema.get("properties")) or "allOf" in schema


def link(name):
    return f"[{name}](#{name.lower()})"


def bounds(schema, low, high, what=""):
    least, most = schema.get(low), schema.get(high)
    if least is not None and most is not None:
        return f", {least} to {most}{what}"
    if least is not None:
        return f", from {least}{what}"
    return "" if most is None else f", at most {most}{what}"


def type_of(schema):
    name = name_of(schema)
    if name:
        return link(name) if is_object(name) else type_of(schemas[name])
    if "const" in schema:
        return f"`{schema['const']}`"
    if "enum" in schema:
        return " ".join("null" if value is None else f"`{value}`" for value in schema["enum"])
    if "oneOf" in schema:
        return " or ".join(type_of(one) for one in schema["oneOf"])
    if schema.get("type") == "array":
        return "array of " + (type_of(schema["items"]) if name_of(schema["items"]) else members_in_line(schema["items"])) + \
            bounds(schema, "minItems", "maxItems")
    kinds = schema.get("type", "any")
    text = " or ".join(kinds) if isinstance(kinds, list) else kinds
    if schema.get("format") == "date-time":
        text = text.replace("string", "time")
    return text + bounds(schema, "minimum", "maximum") + bounds(schema, "minLength", "maxLength", " characters")


def members_in_line(schema):
    return "{" + ", ".join(f"`{name}` {type_of(member)}" for name, member in schema["properties"].items()) + "}"


def words_of(schema):
    name = name_of(schema)
    words = schema.get("description") or (schemas[name].get("description", "") if name and not is_object(name) else "")
    default = schema.get("default", schemas[name].get("default") if name else None)
    if default is not None:
        words += f"{'; ' if words else ''}{json.dumps(default)} unless it is said"
    return words


def table(head, rows):
    print(f"| {head} | | |\n| --- | --- | --- |")
    for name, kind, words in rows:
        print(f"| {name} | {kind} | {words} |")
    print()


def member_rows(schema):
    required = schema.get("required", [])
    for name, member in schema["properties"].items():
        yield f"`{name}`" + ("" if name in required else "?"), type_of(member), words_of(member)


def codes_of(operation):
    """(status, code, what it means here) of every problem that it can answer."""
    for status, response in operation["responses"].items():
        problem = response.get("content", {}).get("application/problem+json", {}).get("schema", {})
        codes = [code for part in problem.get("allOf", []) for code in part.get("properties", {}).get("code", {}).get("enum", [])]
        words = response.get("description", "")
        for code in reversed(codes):  # "`A`: this · `B`: that"
            words, _, meaning = words.rpartition(f"`{code}`: ")
            yield status, code, meaning.removesuffix(" · ")


def code_pairs(operation):
    return [(status, code) for status, code, _ in codes_of(operation)]


def common_codes(some):
    sets = [code_pairs(operation) for operation in some]
    return sorted(pair for pair in sets[0] if all(pair in other for other in sets))


def say_codes(pairs):
    by_status = {}
    for status, code in pairs:
        by_status.setdefault(status, []).append(f"`{code}`")
    return " · ".join(f"{status} {', '.join(codes)}" for status, codes in by_status.items())


def answer_rows(operation):
    for status, response in operation["responses"].items():
        if status == "default" or "application/problem+json" in response.get("content", {}):
            continue
        content = response.get("content", {})
        schema = next(iter(content.values()))["schema"] if content else None
        etag = ", `ETag`" if "ETag" in response.get("headers", {}) else ""
        kind = "text" if "text/plain" in content else type_of(schema) if schema else "nothing"
        yield status, kind + etag, response["description"].removesuffix(".").removeprefix("Done")


def problem_rows(operation):
    """Its own, and the common ones that mean something special here."""
    for status, code, words in sorted(codes_of(operation)):
        if (status, code) not in usual or usual[status, code] != words:
            yield status, f"`{code}`", words


guarded = [operation for _, _, operation in operations if operation.get("security") != []]
changing = [operation for method, _, operation in operations if method != "GET"]
of_any = common_codes(guarded)
of_change = [pair for pair in common_codes(changing) if pair not in of_any]
# What the common ones mean where nothing else is said: what most say.
meanings = collections.Counter(each for operation in guarded for each in codes_of(operation))
usual = {}
for (status, code, words), _ in meanings.most_common():
    if (status, code) in of_any + of_change:
        usual.setdefault((status, code), words)


def say_operation(method, path, operation):
    print(f"### `{method} {path}`")
    scope = f"Scope `{operation['x-hapax-scope']}`." if "x-hapax-scope" in operation else "Needs no key."
    print(f"{operation['summary']} {operation.get('description', '')} {scope}\n".replace("  ", " "))
    queries = [p for p in operation["parameters"] if p.get("in") == "query"]
    if queries:
        table("query", [(f"`?{p['name']}=`", type_of(p["schema"]), words_of(p["schema"])) for p in queries])
    if "requestBody" in operation:
        schema = operation["requestBody"]["content"]["application/json"]["schema"]
        body = schemas[name_of(schema)]
        if "oneOf" in body:
            print(f"Body: {type_of(body)}.\n")
        elif body["properties"] and body.get("additionalProperties") is False:
            table("body", member_rows(body))
        elif body["properties"]:
            print(f"Body: {link(name_of(schema))}.\n")
    table("answer", [*answer_rows(operation), *problem_rows(operation)])


def shown_schemas():
    """Those with members, but for bodies that stand with their operation."""
    inline = {name_of(operation["requestBody"]["content"]["application/json"]["schema"])
              for operation in changing if "requestBody" in operation}
    for name in sorted(schemas):
        if is_object(name) and (name not in inline or schemas[name].get("additionalProperties") is not False):
            yield name, schemas[name]


def say_schema(name, schema):
    print(f"### {name}")
    if schema.get("description"):
        print(schema["description"] + "\n")
    if "allOf" in schema:
        base, more = name_of(schema["allOf"][0]), schema["allOf"][1]["required"]
        print(f"{link(base)}, with {' and '.join(f'`{member}`' for member in more)}.\n")
    else:
        table("member", member_rows(schema))


print(f"""# API reference

Every call of the HTTP API, made by `make reference` out of what the server says about itself: `GET /api/v1/openapi.json`, an OpenAPI 3.1 document for tools and code generators. Do not edit it. [api.md](api.md) explains what is common to all, and has examples.

`name?` may be left out. Any call that needs a key may answer {say_codes(of_any)}. One that changes something (POST, PUT) takes an `Idempotency-Key`, answers with `Idempotency-Status`, and may answer {say_codes(of_change)}. What each code means is in [the table](api.md#codes).
""")
for tag in document["tags"]:
    print(f"## {tag['name']}\n{tag['description']}\n")
    for method, path, operation in operations:
        if tag["name"] in operation["tags"]:
            say_operation(method, path, operation)
print("## Objects\n")
for each in shown_schemas():
    say_schema(*each)
