#!/usr/bin/env python3
"""openapi_walk.py URL : does the server do what its own description says? Run by test_openapi.sh, in its folder.

The document itself   is OpenAPI 3.1 by a strict schema of the parts that we use; every $ref leads somewhere; its codes are
                      those of hapax.h; nothing that openapi.json says is left over.
The walk              every operation, with every success that it declares. Each answer, also each error, must have a status,
                      a media type, headers and a body that the document declares, and a body of ours has no member more.
                      What is sent must be what the document asks for, unless it is to be refused.
After each operation the request that succeeded is sent again, broken in every way that its schema forbids: each member, each
                      query parameter and each name in the path. All of that must be refused.
"""
import hmac
import http.client
import json
import os
import re
import sys
import time
import urllib.parse

import jsonschema

url = urllib.parse.urlsplit(sys.argv[1])
root = os.environ["ROOT"]
connection = http.client.HTTPConnection(url.hostname, url.port, timeout=30)
faults = []


def fault(text):
    faults.append(text)


def result(name):
    print(f"not ok {name}" if faults else f"ok {name}")
    for text in faults[:20]:
        print(f"  {text}")
    faults.clear()


def send(method, path, body=None, headers=None):
    text = None if body is None else json.dumps(body)
    connection.request(method, path, text, headers or {})
    reply = connection.getresponse()
    return reply.status, dict(reply.getheaders()), reply.read()


document = json.loads(send("GET", "/api/v1/openapi.json")[2])
with open(f"{root}/src/api/openapi.json", encoding="utf-8") as file:
    words = json.load(file)
components = document["components"]
operations = {operation["operationId"]: (method.upper(), path, operation)
              for path, item in document["paths"].items() for method, operation in item.items()}


# ---- the document ----

def record(always, sometimes=(), /, **kinds):
    """An object of OpenAPI: these members, and x-… ones."""
    return {"type": "object", "required": list(always), "additionalProperties": False,
            "properties": {name: kinds.get(name, {"type": "string"}) for name in [*always, *sometimes]},
            "patternProperties": {"^x-": {}}}


def named(kind):
    return {"type": "object", "additionalProperties": False, "patternProperties": {"^[A-Za-z0-9._-]+$": kind}}


def or_ref(kind, where):
    return {"oneOf": [record(["$ref"], **{"$ref": {"pattern": f"^#/components/{where}/"}}), kind]}


schema_kind = {"type": ["object", "boolean"]}
content_kind = {"type": "object", "minProperties": 1, "maxProperties": 1, "additionalProperties": record(["schema"], schema=schema_kind),
                "propertyNames": {"pattern": "^[a-z]+/[a-z+]+$"}}
header_kind = record([], ["description", "required", "schema"], schema=schema_kind, required={"type": "boolean"})
parameter_kind = record(["name", "in", "schema"], ["description", "required"], schema=schema_kind,
                        required={"type": "boolean"}, **{"in": {"enum": ["path", "query", "header"]}})
response_kind = record(["description"], ["headers", "content"], content=content_kind,
                       headers={"type": "object", "additionalProperties": or_ref(header_kind, "headers")})
operation_kind = record(
    ["operationId", "summary", "tags", "parameters", "responses"], ["description", "security", "requestBody", "x-hapax-scope"],
    tags={"type": "array", "items": {"enum": [tag["name"] for tag in document["tags"]]}, "minItems": 1},
    parameters={"type": "array", "items": or_ref(parameter_kind, "parameters")},
    security={"const": []}, requestBody=record(["content", "required"], content=content_kind, required={"type": "boolean"}),
    responses={"type": "object", "required": ["default"], "additionalProperties": False,
               "patternProperties": {"^([2345][0-9][0-9]|default)$": or_ref(response_kind, "responses")}},
    **{"x-hapax-scope": {"enum": ["read", "execute", "admin", "worker"]}})
document_kind = record(
    ["openapi", "info", "servers", "security", "tags", "paths", "components"],
    openapi={"const": "3.1.0"}, info=record(["title", "version", "description"]),
    servers={"type": "array", "items": record(["url"])},
    security={"type": "array", "items": {"type": "object", "additionalProperties": {"const": []},
                                         "propertyNames": {"enum": list(components["securitySchemes"])}}},
    tags={"type": "array", "items": record(["name", "description"]), "uniqueItems": True},
    paths={"type": "object", "patternProperties": {"^/": record([], ["get", "put", "post", "delete"], **dict.fromkeys(["get", "put", "post", "delete"], operation_kind))},
           "additionalProperties": False},
    components=record(["securitySchemes", "parameters", "headers", "responses", "schemas"],
                      securitySchemes=named({"type": "object", "required": ["type"]}), parameters=named(parameter_kind),
                      headers=named(header_kind), responses=named(response_kind), schemas=named(schema_kind)))


def refs_in(value):
    if isinstance(value, dict):
        if isinstance(value.get("$ref"), str):
            yield value["$ref"]
        value = list(value.values())
    if isinstance(value, list):
        for each in value:
            yield from refs_in(each)


def resolve(value):
    """One level of $ref; members beside it stay."""
    if "$ref" not in value:
        return value
    target = document
    for part in value["$ref"].removeprefix("#/").split("/"):
        target = target[part]
    return {**resolve(target), **{name: more for name, more in value.items() if name != "$ref"}}


def success_statuses(operation):
    return [status for status, response in operation["responses"].items()
            if status != "default" and "application/problem+json" not in response.get("content", {})]


def codes_in(operation):
    return {code for response in operation["responses"].values()
            for content in response.get("content", {}).values()
            for part in content["schema"].get("allOf", [])
            for code in part.get("properties", {}).get("code", {}).get("enum", [])}


def check_document():
    for error in jsonschema.Draft202012Validator(document_kind).iter_errors(document):
        fault(f"{'/'.join(map(str, error.absolute_path))}: {error.message[:300]}")
    used = set(refs_in(document))
    for ref in used:
        try:
            resolve({"$ref": ref})
        except KeyError:
            fault(f"{ref} leads nowhere")
    for kind in ["parameters", "headers", "responses", "schemas"]:
        for name, value in components[kind].items():
            if f"#/components/{kind}/{name}" not in used:
                fault(f"nobody uses {kind}/{name}")
            if kind == "schemas":
                jsonschema.Draft202012Validator.check_schema(value)
    if len(operations) != sum(len(item) for item in document["paths"].values()):
        fault("an operationId is there twice")
    for path, item in document["paths"].items():
        for operation in item.values():
            inside = [p["name"] for p in operation["parameters"] if p.get("in") == "path"]
            if inside != re.findall(r"{(\w+)}", path) or not all(p.get("required") for p in operation["parameters"] if p.get("in") == "path"):
                fault(f"{path}: its parameters are {inside}")
    result("the_document_is_openapi_3_1")


def check_codes():
    with open(f"{root}/include/hapax.h", encoding="utf-8") as header:
        known = re.findall(r"^\tX\(([A-Z_]+), (\d+), (\d+),", header.read(), re.MULTILINE)
    statuses = {name: status for name, _, status in known}
    by_number = [name for name, number, _ in sorted(known, key=lambda code: int(code[1]))]
    if components["schemas"]["Code"]["enum"] != by_number[1:]:
        fault("the codes are not those of hapax.h, by their numbers")
    for name, (_, _, operation) in operations.items():
        for status, response in operation["responses"].items():
            for code in codes_in({"responses": {status: response}}):
                if statuses.get(code) != status:
                    fault(f"{name}: {code} is not a {status}")
    result("the_codes_are_those_of_hapax_h")
    for kind in ["securitySchemes", "parameters", "headers", "responses", "schemas"]:
        for name, value in words[kind].items():
            if components[kind][name] != value:
                fault(f"{kind}/{name} is not what openapi.json says")
    for name, parts in words["operations"].items():
        operation = operations[name][2] if name in operations else {"responses": {}}
        for part in parts:
            if part != "description" and part not in success_statuses(operation) and part not in codes_in(operation):
                fault(f"openapi.json says {part} of {name}, which cannot be")
    result("the_words_are_those_of_openapi_json")


# ---- asking, and judging every answer ----

walked = {}   # (operationId, status) of every success
good = {}     # operationId: (path values, query, body) of one that has succeeded
asked_n = 0


def validator(schema):
    return jsonschema.Draft202012Validator(schema, resolver=jsonschema.RefResolver("", document))


def complaints(schema, value):
    return [f"{'/'.join(map(str, error.absolute_path))}: {error.message[:200]}" for error in validator(schema).iter_errors(value)]


def check_headers(where, response, headers):
    for name, header in response.get("headers", {}).items():
        if name in headers:
            schema = resolve(header)["schema"]
            value = int(headers[name]) if schema["type"] == "integer" else headers[name]
            for text in complaints(schema, value):
                fault(f"{where}: header {name} {text}")
        elif name in ("ETag", "Retry-After", "WWW-Authenticate"):
            fault(f"{where}: no header {name}")
    for name in ("ETag", "Retry-After", "Idempotency-Status", "Idempotency-Replayed"):
        if name in headers and name not in response.get("headers", {}):
            fault(f"{where}: the header {name} is not declared")


def check_answer(where, operation, status, headers, text):
    response = operation["responses"].get(str(status))
    if response is None:
        fault(f"{where}: {status} is not declared: {text[:200]}")
        return None
    check_headers(where, response, headers)
    if "content" not in response:
        if text:
            fault(f"{where}: a body, and none is declared")
        return None
    kind = headers.get("Content-Type", "").split(";")[0]
    if kind not in response["content"]:
        fault(f"{where}: {kind} is not declared")
        return None
    value = json.loads(text) if kind.endswith("json") else text.decode()
    for complaint in complaints(response["content"][kind]["schema"], value):
        fault(f"{where}: {status} {complaint} in {str(text)[:300]}")
    return value


def path_of(template, values):
    return re.sub(r"{(\w+)}", lambda match: urllib.parse.quote(str(values[match[1]]), safe=""), template)


def check_request(where, operation, query, body):
    """What is not to be refused is what the document asks for."""
    declared = {p["name"]: p for p in operation["parameters"] if p.get("in") == "query"}
    for name, value in query.items():
        schema = resolve(declared[name]["schema"]) if name in declared else False
        if schema and schema.get("type") in ("integer", "boolean"):
            value = json.loads(value)
        if schema is False or complaints(schema, value):
            fault(f"{where}: the query {name}={value} is not what the document asks for")
    content = operation.get("requestBody")
    if body is not None and not content:
        fault(f"{where}: the document knows no body")
    elif body is not None:
        for complaint in complaints(content["content"]["application/json"]["schema"], body):
            fault(f"{where}: the body is not what the document asks for: {complaint}")
    elif content and content["required"]:
        fault(f"{where}: the document wants a body")


def ask(name, wanted, values=None, query=None, body=None, headers=None):
    """wanted: a status, or the code of a problem. Returns the body."""
    global asked_n
    method, template, operation = operations[name]
    values, query, headers = values or {}, query or {}, headers or {}
    path = path_of(template, values) + ("?" + urllib.parse.urlencode(query, doseq=True) if query else "")
    where = f"{name} {path} {json.dumps(body)[:200]}"
    if wanted not in ("VALIDATION_ERROR", "KEY_INVALID", "TOO_LARGE"):
        check_request(where, operation, query, body)
    asked_n += 1
    status, fields, text = send(method, path, body, headers)
    value = check_answer(where, operation, status, fields, text)
    code = value.get("code") if status >= 400 and isinstance(value, dict) else None
    if wanted not in (status, code):
        fault(f"{where}: {wanted} was to be answered, and is {status} {text[:300]}")
    elif wanted == status and status < 400:
        walked[name, str(status)] = True
        good[name] = (values, query, body)
    return value


def do(name, status=None, values=None, query=None, body=None, requester=None):
    """A success; of what changes something, with a key and once more: the same bytes, and marked."""
    method, template, operation = operations[name]
    headers = {"Hapax-Requester": requester} if requester else {}
    status = status or int(success_statuses(operation)[0])
    if method == "GET":
        return ask(name, status, values, query, body, headers)
    headers["Idempotency-Key"] = f"walk-{asked_n}"
    value = ask(name, status, values, query, body, headers)
    path = path_of(template, values or {}) + ("?" + urllib.parse.urlencode(query) if query else "")
    again, fields, text = send(method, path, body, headers)
    if (again, fields.get("Idempotency-Status"), fields.get("Idempotency-Replayed")) != (status, "replayed", "true"):
        fault(f"{name}: with its Idempotency-Key once more: {again} {fields}")
    elif not query and json.loads(text) != value:  # with wait the first one is told more
        fault(f"{name}: replayed, it is another answer: {text[:200]}")
    check_answer(f"{name} once more", operation, again, fields, text)
    return value


def until(name, values, test):
    """Asks until it is so."""
    end = time.monotonic() + 60
    while not test(value := ask(name, 200, values)):
        if time.monotonic() > end:
            fault(f"{name} {values}: it never came to pass, and is {value}")
            return value
        time.sleep(0.01)
    return value


# ---- the walk ----

def walk_entities():
    doc = {"workflow": "doc"}
    one = {**doc, "id": "one"}
    do("createEntity", values=doc, body={"id": "one", "data": {"n": 1}})
    do("createEntity", values=doc)
    ask("createEntity", "ALREADY_EXISTS", doc, body={"id": "one"})
    do("getEntity", values=one)
    do("listEntities", values=doc)
    do("listEntities", values=doc, query={"status": "draft", "held": "false", "limit": "1"})
    do("changeData", values=one, body={"data": {"n": None, "m": {"a": 1}}, "version": 1})
    ask("changeData", "CONCURRENCY_ERROR", one, body={"data": {}, "version": 1})
    ask("fireStep", "WRONG_STATUS", {**one, "step": "close"})
    do("fireStep", values={**one, "step": "approve"})
    ask("fireStep", "CONCURRENCY_ERROR", {**one, "step": "close"}, body={"version": 1})
    ask("fireStep", "INVALID", {**one, "step": "reject"})
    ask("fireStep", "ACTION_FAILED", {**one, "step": "fail"})
    ask("fireStep", "REQUESTER_NOT_ALLOWED", {**one, "step": "mine"})
    ask("fireStep", "OUTCOME_UNKNOWN", {**one, "step": "lose"}, body={"input": {"a": [1]}})
    ask("fireStep", "CLAIM_FAILED", {**one, "step": "close"})
    until("getEntity", one, lambda entity: entity["claim"] and entity["claim"]["held"])
    do("listEntities", values=doc, query={"held": "true"})
    do("probeClaim", values={**one, "step": "lose"})
    ask("resolveClaim", "CONCURRENCY_ERROR", {**one, "step": "lose"}, body={"outcome": "not_done", "version": 1})
    seen = do("getEntity", values=one)["version"]
    do("resolveClaim", values={**one, "step": "lose"}, body={"outcome": "not_done", "version": seen, "reason": "I have looked"})
    told = do("getHistory", values={"subject": "entity:doc:one"})["items"][-1]
    if (told["reason"], told["by"]) != ("resolved: not done: I have looked", "default"):
        fault(f"resolveClaim: the history says {told}")
    ask("probeClaim", "WRONG_STATUS", {**one, "step": "lose"})
    ask("resolveClaim", "WRONG_STATUS", {**one, "step": "lose"}, body={"outcome": "done", "output": 1})
    do("fireStep", values={**one, "step": "close"}, body={"input": None, "version": do("getEntity", values=one)["version"]})
    do("getHistory", values={"subject": "entity:doc:one"}, query={"limit": "2"})
    do("getWhy", values={"id": "entity:doc:one"})
    do("getEvidence", values={"subject": "entity:doc:one"})


def start(definition, by="", **more):
    """What names the run in a path: its id, or its workflow and key."""
    key = more.setdefault("idempotencyKey", f"run {asked_n}/?%") if by else None
    value = do("startRun", 201, body={"definitionId": definition, **more})
    return {"workflow": definition, "key": key} if by else {"id": value["run"]["id"]}


def walk_starts():
    key = {"definitionId": "talk", "input": {"x": 1}, "idempotencyKey": "k"}
    do("startRun", 201, body=key)
    do("startRun", 200, body=key)
    do("startRun", 200, body={**key, "input": {"x": 2}})
    do("startRun", 201, query={"wait": "20s"}, body={"definitionId": "quick"})
    ask("startRun", "NOT_FOUND", body={"definitionId": "tlak"})
    ask("startRun", "KEY_REUSED", body={**key, "definitionId": "quick"})
    signal = {"definitionId": "talk", "idempotencyKey": "s", "signal": {"event": "papers", "id": "e1", "data": [1]}}
    do("startRun", 201, body=signal)
    do("startRun", 200, body=signal)
    do("startRun", 200, body={**signal, "signal": {"event": "papers", "id": "e2"}})


def walk_runs(by=""):
    run = start("talk", by)
    until("getRun" + by, run, lambda value: value["currentStep"] == "say" and value["status"] == "WAITING")
    ask("resumeRun" + by, "WRONG_STATUS", run)
    here = {"definitionVersion": do("getRun" + by, values=run)["definitionVersion"]}
    ask("migrateRun" + by, "NOT_FOUND", run, body={"definitionVersion": 99})
    do("migrateRun" + by, values=run, body={**here, "steps": {"say": "speak"}, "dryRun": True})
    do("pauseRun" + by, values=run)
    do("resumeRun" + by, values=run)
    ask("pauseRun" + by, "CONCURRENCY_ERROR", run, body={"version": 1})
    do("decideApproval" + by, values={**run, "step": "say"}, body={"decision": "approve", "by": "ann", "comment": None})
    do("sendEvent" + by, 202, {**run, "event": "papers"}, body={"id": "e1", "data": [1]})
    do("sendEvent" + by, 200, {**run, "event": "papers"}, body={"id": "e1", "data": [1]})
    do("getRun" + by, values=run, query={"wait": "20s"})
    ask("sendEvent" + by, "WRONG_STATUS", {**run, "event": "papers"})
    ask("cancelRun" + by, "ALREADY_COMPLETED", run)
    do("getRunHistory" + by, values=run)
    do("getRunWhy" + by, values=run)
    if not by:
        do("getHistory", values={"subject": run["id"]})
        do("getWhy", values=run)
        do("getEvidence", values={"subject": run["id"]})
    do("listRuns", query={"status": "COMPLETED", "definitionId": "talk", "unknown": "false", "limit": "1"})
    broken = start("broken", by)
    until("getRun" + by, broken, lambda value: value["status"] == "FAILED")
    do("retryRun" + by, values=broken)
    until("getRun" + by, broken, lambda value: value["status"] == "FAILED")
    first = {"from": do("getRun" + by, values=broken)["steps"][0]["name"]}
    do("restartRun" + by, values=broken, body={**first, "input": {"x": 1}})
    do("getRun" + by, values=broken)
    ask("retryRun" + by, "RESTARTED", broken)
    again = start("broken", by)
    until("getRun" + by, again, lambda value: value["status"] == "FAILED")
    good["restartRun" + by] = (again, {}, first)
    undone = start("undone", by)
    until("getRun" + by, undone, lambda value: value["status"] == "WAITING")
    do("cancelRun" + by, 202, undone)
    until("getRun" + by, undone, lambda value: value["status"] == "CANCELLED" and value["steps"][0]["compensatedAt"])
    do("cancelRun" + by, 200, undone)
    lost = start("lost", by)
    until("getRun" + by, lost, lambda value: value["steps"][0]["status"] == "UNKNOWN")
    do("listRuns", query={"unknown": "true"})
    do("listAttention", query={"kind": "unknown_step", "limit": "1"})
    do("listAttention", query={"order": "money"})
    do("probeStep" + by, values={**lost, "step": "go"})
    ask("resolveStep" + by, "CONCURRENCY_ERROR", {**lost, "step": "go"}, body={"outcome": "done", "version": 1})
    seen = do("getRun" + by, values=lost)["version"]
    do("resolveStep" + by, values={**lost, "step": "go"}, body={"outcome": "done", "output": {"a": 1}, "version": seen, "reason": "I have looked"})
    if not [row for row in do("getRunHistory" + by, values=lost)["items"] if (row["reason"], row["by"], row["step"]) == ("I have looked", "default", "go")]:
        fault("resolveStep: the history does not have the reason")
    until("getRun" + by, lost, lambda value: value["status"] == "COMPLETED")
    # Fresh ones, on which it could be done, are what the broken requests are about.
    talk = start("talk", by)
    until("getRun" + by, talk, lambda value: value["status"] == "WAITING")
    lost = start("lost", by)
    until("getRun" + by, lost, lambda value: value["steps"][0]["status"] == "UNKNOWN")
    good["decideApproval" + by] = ({**talk, "step": "say"}, {}, {"decision": "approve"})
    good["sendEvent" + by] = ({**talk, "event": "papers"}, {}, {"id": "e2"})
    good["resolveStep" + by] = ({**lost, "step": "go"}, {}, {"outcome": "done"})


def walk_jobs():
    pushed = do("pushJobs", body=[{"queue": "q", "payload": {"a": 1}, "key": "one", "runAt": "2026-11-15T06:39:00.5+01:00", "priority": 5},
                                  {"queue": "q"}, {"queue": "q"}])
    do("pushJobs", body={"queue": "q", "key": "one"})
    job = {"id": pushed["jobs"][0]["id"]}
    claim = {"queues": ["q"], "owner": "w", "max": 2, "leaseMs": 60000, "waitMs": 0}
    first, second = do("claimJobs", body=claim)["jobs"]
    hold = {"owner": "w", "fence": first["fence"]}
    do("heartbeatJob", values={"id": first["id"]}, body={**hold, "leaseMs": 60000})
    ask("completeJob", "STALE_FENCE", {"id": first["id"]}, body={**hold, "fence": 99})
    do("completeJob", values={"id": first["id"]}, body={**hold, "output": {"b": 2}})
    do("failJob", values={"id": second["id"]}, body={"owner": "w", "fence": second["fence"], "error": "no paper", "retryable": False})
    do("getJob", values={"id": second["id"]})
    do("getWhy", values={"id": second["id"]})
    do("redriveJob", values={"id": second["id"]})
    ask("redriveJob", "WRONG_STATUS", {"id": second["id"]})
    do("getJob", values=job)
    do("getHistory", values={"subject": job["id"]})
    run = start("work")
    claimed = do("claimJobs", body={**claim, "queues": ["stock"], "waitMs": 20000})["jobs"][0]
    do("getJob", values={"id": claimed["id"]})
    do("listJobs", query={"status": "RUNNING", "queue": "stock", "limit": "1"})
    do("completeJob", values={"id": claimed["id"]}, body={"owner": "w", "fence": claimed["fence"]})
    until("getRun", run, lambda value: value["status"] == "COMPLETED")
    left = do("claimJobs", body=claim)["jobs"][0]
    for name, more in (("heartbeatJob", {"leaseMs": 1000}), ("completeJob", {"output": 1}), ("failJob", {"error": "e", "retryable": True})):
        good[name] = ({"id": left["id"]}, {}, {"owner": "w", "fence": left["fence"], **more})


def walk_functions():
    claim = {"worker": "w", "functions": [{"name": "fn", "version": "1"}], "max": 1, "leaseMs": 60000, "waitMs": 0, "warm": [{"run": "run_0000000000000", "seq": 1}]}
    do("claimTurns", body=claim)
    ask("claimTurns", "NAME_TAKEN", body={**claim, "functions": [{"name": "quick", "version": "1"}]})
    start("fn")
    turn = do("claimTurns", body={**claim, "waitMs": 20000})["turns"][0]
    run, hold = {"id": turn["run"]}, {"worker": "w", "fence": turn["fence"]}
    step = {"kind": "step", "name": "a", "state": "begun"}
    do("writeJournal", values=run, body={**hold, "seq": 0, "entries": [step], "leaseMs": 60000})
    ask("writeJournal", "STEP_OPEN", run, body={**hold, "seq": 1, "end": {"state": "completed"}})
    ask("writeJournal", "BAD_ENTRY", run, body={**hold, "seq": 1, "entries": [step]})
    ask("writeJournal", "SEQ_CONFLICT", run, body={**hold, "seq": 0, "entries": [{**step, "name": "b"}]})
    ask("writeJournal", "STALE_FENCE", run, body={**hold, "seq": 1, "fence": 99})
    do("writeJournal", values=run, body={**hold, "seq": 1, "entries": [{**step, "state": "done", "output": 1}]})
    ask("writeJournal", "NOTHING_TO_WAIT_FOR", run, body={**hold, "seq": 2, "end": {"state": "suspended", "awaits": []}})
    do("readJournal", values=run, query={"fence": str(turn["fence"]), "after": "0"})
    ask("readJournal", "STALE_FENCE", run, {"fence": "99"})
    do("getRun", values=run)
    good["writeJournal"] = (run, {}, {**hold, "seq": 2})
    many = {"calls": [{"run": turn["run"], "call": {**hold, "seq": 2}}, {"run": turn["run"], "call": {**hold, "seq": 2, "fence": 99}}]}
    if [a["status"] for a in do("writeJournals", body=many)["answers"]] != [200, 409]:
        fault("writeJournals: each call is answered by itself")
    good["writeJournals"] = ({}, {}, many)
    good["readJournal"] = (run, {"fence": str(turn["fence"])}, None)


def walk_accounts():
    do("createAccount", body={"id": "acme", "balance": 100})
    ask("createAccount", "ALREADY_EXISTS", body={"id": "acme", "balance": 1})
    do("getAccount", values={"id": "acme"})
    do("creditAccount", values={"id": "acme"}, body={"amount": 20, "key": "p"})
    if not do("creditAccount", values={"id": "acme"}, body={"amount": 20, "key": "p"})["duplicate"]:
        fault("creditAccount: the same credit once more is no duplicate")
    do("listAccounts")
    do("createAccount", body={"id": "zebra", "balance": 0})
    page = do("listAccounts", query={"limit": "1"})
    do("listAccounts", query={"limit": "1", "cursor": page["cursor"]})
    ask("creditAccount", "ALREADY_EXISTS", {"id": "acme"}, body={"amount": 21, "key": "p"})
    do("getLedger", values={"id": "acme"}, query={"limit": "1"})


def batch_of(workflow, **more):
    return {"id": do("createBatch", 201, body={"workflow": workflow, "account": "acme", "items": [{"cost": 5, "input": {"n": 1}}], **more})["id"]}


def walk_batches():
    held = batch_of("pack", hold=True, idempotencyKey="b")
    do("createBatch", 200, body={"workflow": "pack", "account": "acme", "items": [{"cost": 1}], "idempotencyKey": "b"})
    ask("createBatch", "NOT_FOUND", body={"workflow": "pack", "account": "nobody", "items": [{"cost": 1}]})
    do("getWhy", values=held)
    do("addItems", values=held, body={"items": [{"cost": 3, "input": [1]}]})
    do("startBatch", values=held)
    do("getBatch", values=held, query={"wait": "20s"})
    ask("addItems", "WRONG_STATUS", held, body={"items": [{"cost": 3}]})
    do("acceptItem", values={**held, "n": 0})
    do("listItems", values=held, query={"status": "SUCCEEDED", "decision": "accepted", "limit": "1"})
    ask("cancelBatch", "ALREADY_COMPLETED", held)
    do("listBatches", query={"status": "COMPLETED", "workflow": "pack", "limit": "1"})
    do("getHistory", values={"subject": held["id"]})
    do("getEvidence", values={"subject": held["id"]})
    do("cancelBatch", 200, batch_of("pack", hold=True))
    slow = batch_of("slow")
    until("getBatch", slow, lambda batch: batch["running"] == 1)
    do("cancelBatch", 202, slow)
    with open("go", "w", encoding="utf-8"):
        pass
    until("getBatch", slow, lambda batch: batch["status"] == "CANCELLED")
    do("listItems", values=slow)
    odd = batch_of("odd")
    until("getBatch", odd, lambda batch: batch["status"] == "COMPLETED")
    do("probeItem", values={**odd, "n": 0})
    do("resolveItem", values={**odd, "n": 0}, body={"outcome": "done", "output": 7})
    ask("probeItem", "WRONG_STATUS", {**odd, "n": 0})
    ask("acceptItem", "WRONG_STATUS", {**batch_of("pack", hold=True), "n": 0})
    odd = batch_of("odd")
    until("getBatch", odd, lambda batch: batch["status"] == "COMPLETED")
    good["resolveItem"] = ({**odd, "n": 0}, {}, {"outcome": "done"})
    good["probeItem"] = ({**odd, "n": 0}, {}, None)
    good["addItems"] = (batch_of("pack", hold=True), {}, {"items": [{"cost": 1}]})
    good["startBatch"] = good["cancelBatch"] = (good["addItems"][0], {}, {})


def walk_schedules():
    values = {"name": "nightly"}
    body = {"workflow": "quick", "cron": "0 3 * * *", "timezone": "Europe/Berlin"}
    if len(do("putSchedule", 201, values, body=body)["next"]) != 10:
        fault("putSchedule: not the next ten times")
    do("putSchedule", 200, values, body=body)
    ask("putSchedule", "NOT_FOUND", {"name": "other"}, body={**body, "workflow": "nothing"})
    do("getSchedule", values=values)
    do("listSchedules", query={"limit": "1"})
    do("pauseSchedule", values=values)
    do("resumeSchedule", values=values)
    do("triggerSchedule", 201, values, body={"id": "once"})
    do("triggerSchedule", 200, values, body={"id": "once"})
    do("backfillSchedule", values=values, body={"from": "2026-01-01T00:00:00Z", "to": "2026-01-02T00:00:00Z"})
    ask("backfillSchedule", "TOO_LARGE", values, body={"from": "2016-01-01T00:00:00Z", "to": "2026-01-02T00:00:00Z"})
    do("putSchedule", 201, {"name": "packs"}, body={"batch": {"workflow": "pack", "account": "acme", "items": [{"cost": 1}]}, "every": "1d"})
    do("triggerSchedule", 201, {"name": "packs"})
    do("getWhy", values={"id": do("getSchedule", values=values)["id"]})
    do("getHistory", values={"subject": do("getSchedule", values=values)["id"]})
    do("deleteSchedule", values={"name": "packs"})
    ask("deleteSchedule", "NOT_FOUND", {"name": "packs"})


def walk_bulk():
    counted = do("countRuns", query={"definitionId": "quick", "limit": "1"})["items"]
    if len(counted) != 1 or counted[0]["counts"]["COMPLETED"] < 1:
        fault("countRuns: no run is counted")
    body = {"verb": "resume", "kind": "run", "where": 'workflow == "quick" and status == "COMPLETED"'}
    if do("startBulk", 200, body={**body, "dryRun": True})["selected"] < 1:
        fault("startBulk: nothing is counted")
    values = {"id": do("startBulk", 202, body=body)["id"]}
    until("getBulk", values, lambda bulk: bulk["status"] == "COMPLETED")
    if {item["code"] for item in do("listBulkItems", values=values, query={"limit": "1"})["items"]} != {"WRONG_STATUS"}:
        fault("listBulkItems: not refused")
    do("cancelBulk", values=values, body={})
    ask("startBulk", "BAD_QUERY", body={**body, "where": "nothing == 1"})
    migrate = {**body, "verb": "migrate", "arguments": {"definitionVersion": 1, "steps": {"a": "b"}}}
    values = {"id": do("startBulk", 202, body=migrate)["id"]}
    until("getBulk", values, lambda bulk: bulk["status"] == "COMPLETED" and bulk["unchanged"] == bulk["selected"] > 0)
    ask("startBulk", "VALIDATION_ERROR", body={**migrate, "arguments": {"definitionVersion": 0}})


def walk_hook():
    """What is signed is believed: whatever else the request says."""
    body = {"id": "e1"}
    signature = hmac.new(b"sesame", json.dumps(body).encode(), "sha256").hexdigest()
    status, fields, text = send("POST", "/hooks/h", body, {"X-Signature": signature, "Idempotency-Key": "k"})
    if check_answer("deliverToHook", operations["deliverToHook"][2], status, fields, text) == {"accepted": True, "duplicate": False}:
        walked["deliverToHook", "200"] = True


def walk_the_rest():
    definition = next(each["definition"] for each in do("listDefinitions")["items"] if each["name"] == "quick")
    do("putDefinition", values={"name": "quick"}, body=definition)
    ask("putDefinition", "DEFINITION_INVALID", {"name": "quick"}, body={**definition, "stpes": []})
    if do("getDefinition", values={"name": "quick"})["definition"] != definition:
        fault("getDefinition: it is not what was put")
    do("getDefinition", values={"name": "quick"}, query={"version": "1"})
    ask("getDefinition", "NOT_FOUND", {"name": "quick"}, {"version": "99"})
    if not do("getDefinitionGraph", values={"name": "quick"}).startswith("<svg"):
        fault("getDefinitionGraph: it is no picture")
    ask("getDefinitionGraph", "NOT_FOUND", {"name": "nobody"})
    do("sweepModule", values={"module": "papers"})
    etag = send("GET", "/api/v1/openapi.json")[1]["ETag"]
    do("getOpenapi")
    ask("getOpenapi", 304, headers={"If-None-Match": etag})
    walk_hook()
    do("getHealth")
    do("getReadiness")
    do("getMetrics")


def walk():
    walk_accounts()
    walk_entities()
    walk_starts()
    walk_runs()
    walk_runs("ByKey")
    walk_jobs()
    walk_functions()
    walk_batches()
    walk_schedules()
    walk_bulk()
    walk_the_rest()
    result("every_answer_is_as_it_is_described")
    for name, (_, _, operation) in operations.items():
        for status in success_statuses(operation):
            if (name, status) not in walked and (name, status) != ("getReadiness", "503"):  # while it stops
                fault(f"{name}: nothing has answered {status}")
    result("every_success_has_been_seen")


# ---- what is to be refused ----

SAMPLES = {"null": None, "boolean": True, "integer": 7, "number": 1.5, "string": "zzz", "array": [], "object": {}}


def wrong_values(schema):
    """Values that a schema forbids, each for one reason."""
    schema = resolve(schema)
    kinds = schema.get("type")
    if kinds is None:
        return
    kinds = kinds if isinstance(kinds, list) else [kinds]
    for kind, sample in SAMPLES.items():
        if kind not in kinds:
            yield sample
    if "enum" in schema:
        yield "zzz"
    if "minimum" in schema:
        yield schema["minimum"] - 1
    if "maximum" in schema:
        yield schema["maximum"] + 1
    if schema.get("minLength"):
        yield ""
    if "maxLength" in schema:
        yield "x" * (schema["maxLength"] + 1)
    if schema.get("minItems"):
        yield []
    if "maxItems" in schema and schema["maxItems"] < 1000:
        yield ["x"] * (schema["maxItems"] + 1)
    if "pattern" in schema or schema.get("format") == "date-time":
        yield "/"


def broken_bodies(schema, body):
    schema = resolve(schema)
    if "oneOf" in schema:
        yield from broken_bodies(schema["oneOf"][0], {"queue": "q", "payload": 1})
        yield from ([one] for one in broken_bodies(schema["oneOf"][0], {"queue": "q"}))
        yield from ([], [{"queue": "q"}] * 1001, 7)
        return
    yield from ([], 7, None if "required" in schema else "zzz")
    for name in schema.get("required", []):
        yield {member: value for member, value in body.items() if member != name}
    for name, member in schema["properties"].items():
        for value in wrong_values(member):
            yield {**body, name: value}
    if "items" in schema["properties"]:
        for value in broken_bodies(schema["properties"]["items"]["items"], {"cost": 1}):
            yield {**body, "items": [{"cost": 1}, value]}
    if schema.get("additionalProperties") is False:
        yield {**body, "zzz": 1}


def ask_refused(name, values, query, body):
    """What a 400 says."""
    return (ask(name, "VALIDATION_ERROR", values, query, body) or {}).get("detail", "")


def refuse_bodies():
    for name, (_, _, operation) in operations.items():
        if "requestBody" not in operation or name == "putDefinition":  # its words are the checker's: test_definitions
            continue
        values, query, body = good[name]
        for broken in broken_bodies(operation["requestBody"]["content"]["application/json"]["schema"], body or {}):
            ask(name, "VALIDATION_ERROR", values, query, broken)
    result("every_body_that_breaks_its_schema_is_refused")


def refuse_members():
    """The members that the server knows, by its own words, are those of the document."""
    for name, (_, _, operation) in operations.items():
        if "requestBody" not in operation or name == "putDefinition":
            continue
        schema = resolve(operation["requestBody"]["content"]["application/json"]["schema"])
        schema = resolve(schema["oneOf"][0]) if "oneOf" in schema else schema
        values, query, _ = good[name]
        detail = ask_refused(name, values, query, {"zzz": 1})
        known = detail.partition("known are ")[2]
        if sorted(known.split(", ")) != sorted(schema["properties"] or ["none"]):
            fault(f"{name}: the server says: {detail}; the document has {list(schema['properties'])}")
    result("every_member_is_described")


def refuse_queries():
    for name, (_, _, operation) in operations.items():
        if operation.get("security") == []:
            continue
        values, _, body = good[name]
        detail = ask_refused(name, values, {"zzz": "1"}, body)
        if "no query parameter" not in detail:
            fault(f"{name}: ?zzz=1 is told {detail}")
        for parameter in operation["parameters"]:
            if parameter.get("in") != "query":
                continue
            schema = resolve(parameter["schema"])
            if schema["type"] != "string" or "enum" in schema or "pattern" in schema:
                ask(name, "VALIDATION_ERROR", values, {parameter["name"]: "zzz"}, body)
            if "maximum" in schema:
                ask(name, "VALIDATION_ERROR", values, {parameter["name"]: "0"}, body)
                ask(name, "VALIDATION_ERROR", values, {parameter["name"]: schema["maximum"] + 1}, body)
            if "no query parameter" in ask_refused(name, values, {parameter["name"]: ["1s", "1s"]}, body):
                fault(f"{name}: ?{parameter['name']}= is described, and not known")
    result("every_query_parameter_is_known_and_no_other")


def refuse_names():
    for name, (_, path, _) in operations.items():
        values, query, body = good.get(name, ({}, {}, None))  # a hook's are by their signature
        for each in re.findall(r"{(\w+)}", path):
            wanted = "VALIDATION_ERROR" if name in ("putDefinition", "putSchedule") else "NOT_FOUND"
            nobody = "z%20z" if name == "putSchedule" else "zzz"  # any other name it makes
            ask(name, wanted, {**values, each: nobody}, {} if query.get("wait") else query, body)
    result("every_name_that_is_not_there_is_not_found")


def refuse_keys():
    for name, (method, _, operation) in operations.items():
        if name not in good:
            continue  # a hook takes no notice of keys
        values, query, body = good[name]
        if operation.get("security") != []:
            ask(name, "UNAUTHENTICATED", values, query, body, {"X-API-Key": "hx_nobody"})
        if method != "GET":
            ask(name, "KEY_INVALID", values, query, body, {"Idempotency-Key": "a b"})
    once = {"Idempotency-Key": "once"}
    ask("createEntity", 201, {"workflow": "doc"}, body={"data": 1}, headers=once)
    ask("createEntity", "FINGERPRINT_MISMATCH", {"workflow": "doc"}, body={"data": 2}, headers=once)
    result("every_key_that_is_none_is_refused")


def refuse_methods():
    for path in document["paths"]:
        other = "PATCH" if "delete" in document["paths"][path] else "DELETE"
        status, fields, text = send(other, re.sub(r"{\w+}", "x", path))
        problem = json.loads(text)
        if status != 405 or "Allow" not in fields or complaints(components["schemas"]["Problem"], problem):
            fault(f"DELETE {path}: {status} {fields} {text[:200]}")
    result("other_methods_are_refused_as_described")


check_document()
check_codes()
walk()
refuse_bodies()
refuse_members()
refuse_queries()
refuse_names()
refuse_keys()
refuse_methods()
print(f"# {asked_n} requests, {len(document['paths'])} paths, {len(operations)} operations")
