# Hapax: the one Makefile.
#
#   make              everything into build/: the library, the program, the examples
#   make run          the demo, alive, with three commands to paste; Ctrl-C stops it
#   make test         every test, on SQLite, a private PostgreSQL and a private Redis; ends with "N passed, N failed"
#   make T=json test  only the tests whose path contains "json"
#   make SLIM=1       into build/slim/: SQLite alone, without libpq, hiredis and OpenSSL (docs/embedding.md says what is missing)
#   make DEBUG=1 …    with the asserts of debug builds (DEBUG_ASSERT); the builds with sanitizers always have them
#   make clients      the clients of JavaScript and Python into build/clients/, as an npm tarball and a wheel
#   make root-test    `make run` and `make test` in a fresh clone inside a fresh minimal Debian; T=json as above
#
# It works in two passes, because a fresh machine has no pkg-config to ask. The outer pass installs the packages
# that are missing and decides what is run; the inner pass (INNER=1) compiles and links, in parallel. Whatever
# is run is run by the outer pass, one program after the other.
#
# Every flavour of the code has a folder of its own: build/ (FLAVOUR empty), build/asan, build/tsan, build/fuzz,
# build/deb, build/slim.

SHELL := /bin/sh
MAKEFLAGS += --no-builtin-rules
.SUFFIXES:
.DELETE_ON_ERROR:
.DEFAULT_GOAL := all

SLIM ?=
FLAVOUR ?= $(if $(SLIM),slim)
BUILD ?= build$(if $(FLAVOUR),/$(FLAVOUR))
PREFIX ?= /usr/local
LIBDIR ?= $(PREFIX)/lib
DESTDIR ?=
FUZZ_SECONDS ?= 60
DEBUG ?=
V ?=
T ?=

VERSION := $(shell sed -n 's/^.define HX_VERSION "\(.*\)"/\1/p' include/hapax.h)
SOVERSION := $(firstword $(subst ., ,$(VERSION)))

# --- what there is ----------------------------------------------------------------------------------------------

find = $(if $(wildcard $(1)),$(sort $(shell find $(1) -name '$(2)')))

# What needs a library that a slim build does without, and what stands in its place there.
FULL_SRC := $(sort $(wildcard src/db/postgres*.c)) src/db/listen.c src/db/store_name.c src/base/sha256_openssl.c \
	$(addprefix src/gate/,redis.c redis_worker.c store_redis.c entry_redis.c) src/base/tls.c
SLIM_SRC := src/db/without_postgres.c src/gate/without_redis.c src/base/without_tls.c src/base/sha256_own.c
SRC := $(filter-out $(if $(filter slim,$(FLAVOUR)),$(FULL_SRC),$(SLIM_SRC)),$(call find,src,*.c))
CLI_SRC := $(filter src/cli/%,$(SRC))
# What explores definitions: in the program and in tests, never in the library.
SIM_SRC := $(filter src/sim/% src/trial/%,$(SRC))
LIB_SRC := $(filter-out $(CLI_SRC) $(SIM_SRC),$(SRC))
SCHEMA := $(sort $(wildcard src/db/schema/*.sql))

SUPPORT_SRC := $(sort $(wildcard tests/support/*.c))
# In tests/chaos a file that is not a test is a program that the tests start and kill.
HELPER_SRC := $(filter-out tests/chaos/test_%,$(wildcard tests/chaos/*.c))
FUZZ_SRC := $(sort $(wildcard tests/fuzz/fuzz_*.c))
# What they try: whatever reads the texts of strangers, and what that stands on.
FUZZED_SRC = $(filter src/base/% src/model/%,$(LIB_SRC)) src/db/link.c src/db/stmt.c \
	$(addprefix src/flow/,audit_chain.c audit_entry.c evidence.c ways.c) \
	$(addprefix src/gate/,fingerprint.c key.c policy.c policy_sources.c redis_url.c replay.c scope.c source.c) \
	src/trial/example_file.c $(addprefix src/wire/,body.c charset.c chunk.c query.c target.c wire.c writer.c)
BENCH_SRC := $(sort $(wildcard bench/*.c))
EXAMPLE_SRC := $(sort $(wildcard examples/*/*.c))

# Tests are programs (test_*.c) and scripts (test_*.sh). T=text picks those whose path contains the text.
pick = $(if $(T),$(foreach t,$(1),$(if $(findstring $(T),$(t)),$(t))),$(1))
suite = $(call pick,$(call find,tests/$(1),test_*.c) $(call find,tests/$(1),test_*.sh))
SUITES := unit contract sim chaos http clients
TESTS := $(foreach s,$(SUITES),$(call suite,$(s)))
SANITIZED_TESTS := $(foreach s,unit contract sim http,$(call suite,$(s)))
QUICK_TESTS := $(foreach s,unit contract,$(call suite,$(s)))
SOAK := $(sort $(wildcard tests/soak/*))

# Where the program of a test is, in build folder $(1); a script is run where it stands.
programs = $(patsubst tests/%.c,$(1)/tests/%,$(2))

ifndef INNER
# === the outer pass =============================================================================================

.NOTPARALLEL:
.PHONY: all run test mutants mutants-explore clients bench race asan asan-quick tsan fuzz soak format lint reference install uninstall deb package-test root-test clean check tests \
	packages-build packages-demo packages-test packages-race packages-lint packages-deb packages-root

JOBS := $(shell nproc 2>/dev/null || echo 2)
inner = +@$(MAKE) --no-print-directory $(if $(SLIM),FLAVOUR=slim) $(if $(filter -j%,$(MAKEFLAGS)),,-j$(JOBS)) INNER=1
run_tests = HAPAX_BUILD=$(abspath $(1)) V=$(V) tests/with-postgres tests/with-redis tests/run

all: packages-build check
	$(inner) all

check:
	@scripts/check-includes.sh
	@scripts/check-banned.sh

run: packages-demo all
	@examples/demo/run.sh

# Builds the test programs and does not run them.
tests: packages-test check
	$(inner) all tests benches

test: tests
	$(if $(FUZZ_SRC),$(inner) FLAVOUR=fuzz fuzzers)
	@HAPAX_FUZZ_BUILD=$(abspath build/fuzz) FUZZ_SECONDS=3 HAPAX_MUTANTS_OF=16 $(call run_tests,$(BUILD)) \
		$(call programs,$(BUILD),$(TESTS)) \
		$(if $(FUZZ_SRC),$(call pick,tests/fuzz/run)) \
		$(call pick,$(wildcard tests/mutants/run))

# Every guard that is marked in the source, removed alone; `make test` tries one in sixteen.
mutants: tests
	@HAPAX_JOBS=$(JOBS) $(call run_tests,$(BUILD)) tests/mutants/run

# Which of them hapax explore finds with our own definitions, against tests/mutants/explored. HAPAX_MUTANTS_OF=N: one in N.
mutants-explore: all
	@HAPAX_BUILD=$(abspath $(BUILD)) tests/mutants/explore

asan tsan: packages-test check
	$(inner) FLAVOUR=$@ all tests
	@TEST_TIMEOUT=3600 $(call run_tests,build/$@) $(call programs,build/$@,$(SANITIZED_TESTS))

# What the build server has the time for; HAPAX_BRIEF: the pairs of units, which take longest, do not all meet.
asan-quick: packages-test check
	$(inner) FLAVOUR=asan all $(call programs,build/asan,$(filter %.c,$(QUICK_TESTS)))
	@HAPAX_BRIEF=1 TEST_TIMEOUT=$${TEST_TIMEOUT:-1200} $(call run_tests,build/asan) $(call programs,build/asan,$(QUICK_TESTS))

fuzz: packages-test check
	$(inner) FLAVOUR=fuzz fuzzers
	@HAPAX_FUZZ_BUILD=$(abspath build/fuzz) FUZZ_SECONDS=$(FUZZ_SECONDS) tests/fuzz/run

soak: tests
	@HAPAX_SOAK=1 TEST_TIMEOUT=86400 $(call run_tests,$(BUILD)) \
		$(call programs,$(BUILD),$(call suite,sim)) $(SOAK)

bench: packages-test all
	$(inner) benches
	@HAPAX_BUILD=$(abspath $(BUILD)) tests/with-postgres bench/bench.py

# Beside Restate, DBOS and others, from npm; all on loopback. PostgreSQL and Redis lie on the same disk as the rest.
race: packages-race all
	$(inner) benches
	@mkdir -p $(BUILD)/race/tmp
	@HAPAX_BUILD=$(abspath $(BUILD)) TMPDIR=$(abspath $(BUILD))/race/tmp tests/with-postgres tests/with-redis bench/race/race.py

C_FILES = $(foreach d,include src tests bench examples,$(call find,$(d),*.[ch]))

format: packages-lint
	@clang-format -i $(C_FILES)

lint: packages-lint check
	@clang-format --dry-run -Werror $(C_FILES)
	@cppcheck --quiet -j$(JOBS) --std=c11 --enable=warning,portability --inline-suppr --error-exitcode=1 \
		--suppress=missingIncludeSystem --suppress=unknownMacro --suppress=identicalInnerCondition \
		--suppress=uninitStructMember \
		-D__linux__ -D_GNU_SOURCE -D__cppcheck__ -Isrc -Iinclude $(SRC)

clients: packages-demo
	@scripts/pack-clients.py $(VERSION) build/clients

# With DESTDIR, PREFIX and LIBDIR as usual.
install_files = BUILD='$(BUILD)' DESTDIR='$(DESTDIR)' PREFIX='$(PREFIX)' LIBDIR='$(LIBDIR)' packaging/install.sh
install: all
	@$(install_files) install
uninstall:
	@$(install_files) uninstall

# Built with the flags of Debian's own packages.
deb: packages-deb check
	$(inner) FLAVOUR=deb all
	@BUILD=build/deb packaging/deb.sh

# In a fresh minimal Debian, as root: installs the package, uses the service, removes it.
package-test: deb packages-root
	@packaging/test-package.sh build/deb/hapax_$(VERSION)_*.deb

# In a fresh minimal Debian with git and make, as root: both commands of README's quick start, in a clone of HEAD.
root-test: packages-root
	@T='$(T)' packaging/test-clone.sh

# The page about every call, out of what the server says about itself.
reference: all packages-demo
	@scripts/api-reference.py $(BUILD)/hapax >$(BUILD)/api-reference.md && mv $(BUILD)/api-reference.md docs/api-reference.md

clean:
	@rm -rf build

packages-build:
	@scripts/install-packages.sh build

packages-demo:
	@scripts/install-packages.sh build demo

packages-test:
	@scripts/install-packages.sh build demo test

packages-race:
	@scripts/install-packages.sh build demo test race

packages-lint:
	@scripts/install-packages.sh lint

packages-deb:
	@scripts/install-packages.sh build deb

packages-root:
	@scripts/install-packages.sh demo root

# Any single file of the build, e.g. `make build/tests/unit/base/test_json`.
build/%: packages-build
	$(inner) $@

Makefile: ;

else
# === the inner pass: compile and link ===========================================================================

.PHONY: all tests fuzzers benches FORCE

PACKAGES := sqlite3 zlib $(if $(filter slim,$(FLAVOUR)),,libpq libcrypto libssl hiredis)
TEST_PACKAGES := cmocka

pkg_cflags := $(shell pkg-config --cflags $(PACKAGES))
pkg_libs := $(shell pkg-config --libs $(PACKAGES)) -pthread
ifneq ($(.SHELLSTATUS),0)
$(error pkg-config does not know all of: $(PACKAGES))
endif
test_cflags := $(shell pkg-config --cflags $(TEST_PACKAGES) 2>/dev/null)
test_libs := $(shell pkg-config --libs $(TEST_PACKAGES) 2>/dev/null)

ifeq ($(origin CC),default)
CC := $(if $(filter fuzz,$(FLAVOUR)),clang,gcc)
endif

OPTIMIZE := -O2
DEBUG_INFO := -g
SANITIZE :=
ifeq ($(FLAVOUR),asan)
SANITIZE := -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer -Wno-maybe-uninitialized
OPTIMIZE := -O1
endif
ifeq ($(FLAVOUR),tsan)
SANITIZE := -fsanitize=thread -fno-omit-frame-pointer -Wno-maybe-uninitialized
OPTIMIZE := -O1
endif
ifeq ($(FLAVOUR),fuzz)
SANITIZE := -fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer
endif

ifeq ($(FLAVOUR),deb)
buildflags = $(shell DEB_BUILD_MAINT_OPTIONS=hardening=+all dpkg-buildflags --get $(1))
CPPFLAGS := $(call buildflags,CPPFLAGS)
CFLAGS := $(call buildflags,CFLAGS)
LDFLAGS := $(call buildflags,LDFLAGS)
endif
# Names and lines are all that a sanitizer says.
ifneq ($(SANITIZE),)
DEBUG_INFO := -g1
endif
CFLAGS ?= $(OPTIMIZE) $(DEBUG_INFO)
CPPFLAGS ?=
LDFLAGS ?=
# Nobody unwinds our stack but a debugger, which has its own tables (-g); and most of what is relocated are pointers of tables,
# which this says in bits. Together a sixth of the program. Loops alone are aligned, which saves 20 KB more; and tables as the
# ABI wants it, not as vector units might (gcc on x86 alone has this), another 24 KB.
ifeq ($(filter asan tsan fuzz,$(FLAVOUR)),)
SMALL_CFLAGS := -fno-asynchronous-unwind-tables -fno-unwind-tables -ffunction-sections -fdata-sections \
	-fno-align-functions -fno-align-jumps -fno-align-labels \
	$(shell $(CC) -malign-data=abi -E -x c /dev/null >/dev/null 2>&1 && echo -malign-data=abi)
SMALL_LDFLAGS := -Wl,-z,pack-relative-relocs -Wl,--gc-sections -Wl,-z,noseparate-code
endif
c_flags = -std=c17 -D_GNU_SOURCE -Wall -Wextra -Werror -fPIC -fno-semantic-interposition -pthread \
	$(pkg_cflags) $(SANITIZE) $(CPPFLAGS) $(CFLAGS) $(SMALL_CFLAGS) $(SMALLER)
ifeq ($(FLAVOUR),slim)
c_flags += -DHX_SLIM
endif
ifneq ($(DEBUG)$(filter asan tsan fuzz,$(FLAVOUR)),)
c_flags += -DHX_DEBUG
endif
includes = -Isrc -Iinclude
compile = $(CC) $(c_flags) -MMD -MP -c -o $@ $<
link_command = $(CC) $(SANITIZE) $(CFLAGS) $(LDFLAGS) $(SMALL_LDFLAGS)
link = $(link_command) -o $@
# The program, but for the flavours that look into it, has its texts packed.
link_program = $(if $(SMALL_LDFLAGS),CC='$(CC)' scripts/link-packed.sh $@ $(link_command),$(link))

# What only tests are linked by: with gold it takes a quarter of the time, with lld not much more.
quick_ld := $(shell scripts/quick-ld.sh)

# `make V=1` shows the commands, otherwise there is one short line for each file.
say = $(if $(V),,@printf '  %-6s %s\n' '$(1)' '$(patsubst build/%,%,$@)';)
make_dir = @mkdir -p $(@D)

objects = $(patsubst %.c,$(BUILD)/obj/%.o,$(1))
LIB_OBJ := $(call objects,$(LIB_SRC)) $(BUILD)/obj/gen/schema.o $(BUILD)/obj/gen/openapi.o $(BUILD)/obj/gen/web.o
SIM_OBJ := $(call objects,$(SIM_SRC))
CLI_OBJ := $(call objects,$(CLI_SRC)) $(BUILD)/obj/gen/texts.o
SUPPORT_OBJ := $(call objects,$(SUPPORT_SRC))

built_tests := $(filter %.c,$(if $(filter asan tsan,$(FLAVOUR)),$(SANITIZED_TESTS),$(TESTS) $(HELPER_SRC)))
TEST_BIN := $(call programs,$(BUILD),$(built_tests))
FUZZ_BIN := $(patsubst tests/fuzz/%.c,$(BUILD)/%,$(FUZZ_SRC))
BENCH_BIN := $(patsubst bench/%.c,$(BUILD)/bench/%,$(BENCH_SRC))
EXAMPLE_BIN := $(foreach e,$(EXAMPLE_SRC),$(BUILD)/examples/$(basename $(notdir $(e))))
HAPAX_BIN := $(if $(wildcard src/cli/main.c),$(BUILD)/hapax)

all: $(BUILD)/libhapax.a $(BUILD)/libhapax.so $(HAPAX_BIN) $(EXAMPLE_BIN)
	@:
tests: $(TEST_BIN)
	@:
fuzzers: $(FUZZ_BIN)
	@:
benches: $(BENCH_BIN)
	@:

# A changed flag recompiles, a source that has gone leaves the archives: both are files that change only when
# their text does.
remember = @mkdir -p $(@D); printf '%s\n' '$(1)' | cmp -s - $@ || printf '%s\n' '$(1)' >$@
FORCE:
$(BUILD)/flags: FORCE
	$(call remember,$(CC) $(c_flags))
$(BUILD)/sources: FORCE
	$(call remember,$(SRC) $(SUPPORT_SRC))

# Migrations become C text.
$(BUILD)/gen/schema.c: $(SCHEMA) $(BUILD)/schema-files scripts/embed-schema.sh scripts/embed-packed.sh scripts/pack.sh
	$(make_dir)
	$(call say,EMBED)scripts/embed-schema.sh $(SCHEMA) >$@
$(BUILD)/schema-files: FORCE
	$(call remember,$(SCHEMA))
# And so do the words of the API's description.
$(BUILD)/gen/openapi.c: src/api/openapi.json scripts/embed-packed.sh scripts/pack.sh
	$(make_dir)
	$(call say,EMBED)scripts/embed-packed.sh openapi_words <$< >$@
# And the dashboard, compressed.
WEB := web/index.html $(sort $(wildcard web/*.js web/*.css web/*.svg web/vendor/*.js web/vendor/*.css))
$(BUILD)/gen/web.c: $(WEB) $(BUILD)/web-files scripts/embed-web.sh scripts/pack.sh
	$(make_dir)
	$(call say,EMBED)scripts/embed-web.sh web $(WEB) >$@
$(BUILD)/web-files: FORCE
	$(call remember,$(WEB))
# And the scripts of the program; and its first projects, each packed as one, its files in the order of src/cli/init.c.
PROJECT_plain := $(addprefix src/cli/text/,README.md hapax.json order.json welcome.json)
PROJECT_js := $(addprefix src/cli/text/,README_js.md package.json order.mjs worker.mjs test.mjs) \
	$(addprefix clients/js/,index.js index.d.ts client.js run.js test.js)
PROJECT_python := $(addprefix src/cli/text/,README_python.md order.py worker.py test_order.py) \
	$(addprefix clients/python/hapax/,__init__.py client.py run.py testing.py)
PROJECTS := plain js python
SCRIPTS := bash zsh
$(BUILD)/gen/texts.c: $(foreach p,$(PROJECTS),$(PROJECT_$(p))) $(SCRIPTS:%=src/cli/text/completion.%) scripts/embed-packed.sh \
		scripts/pack.sh Makefile
	$(make_dir)
	$(call say,EMBED){ $(foreach s,$(SCRIPTS),scripts/embed-packed.sh text_completion_$(s) <src/cli/text/completion.$(s) &&) \
		$(foreach p,$(PROJECTS),{ for f in $(PROJECT_$(p)); do cat "$$f" && printf '\0'; done; } | \
			scripts/embed-packed.sh project_$(p) &&) :; } >$@
$(BUILD)/obj/gen/%.o: $(BUILD)/gen/%.c $(BUILD)/flags
	$(make_dir)
	$(call say,CC)$(compile) $(includes)

# The raw programs of the benchmark see no header of the engine.
$(BUILD)/obj/bench/raw_%.o: includes :=
$(BUILD)/obj/tests/%.o: includes += -Itests $(test_cflags)
# These wait for what they test, and there are many: a third of the time of a build was to make them quick.
$(foreach s,unit http chaos,$(BUILD)/obj/tests/$(s)/%.o): private OPTIMIZE := -O0
ifeq ($(DEBUG)$(SANITIZE),)
$(BUILD)/obj/tests/%.o: private DEBUG_INFO :=
endif
# What runs once, or once for each call of a person or of a definition, is small rather than quick; also in a package, whose
# flags say -O2. With -Oz instead of -Os a run of three native steps on SQLite takes 0.5 % more instructions (callgrind).
ifneq ($(and $(SMALL_CFLAGS),$(filter -O2,$(CFLAGS))),)
$(foreach s,cli api model engine flow gate act proxy trial,$(BUILD)/obj/src/$(s)/%.o): private SMALLER := -Oz
$(foreach s,base/error base/excerpt base/json_canonical base/json_merge base/json_pointer base/json_tree base/log base/sortable base/steady_clock \
	base/thread base/tls base/trace db/backup db/link db/listen db/migrate db/migrate_fold db/postgres db/postgres_blocked \
	db/postgres_connect db/postgres_group db/postgres_guard db/postgres_trip db/sqlite db/sqlite_file db/sqlite_sync \
	db/stmt db/store_name db/store_schema serve/bearer serve/inner serve/listener serve/local serve/metrics serve/problem serve/router \
	serve/server serve/stream task/aside task/lane_limited task/lane_stands task/lane_wait task/lanes task/sentinel task/trouble \
	wire/address wire/chunk wire/query wire/resolver wire/tunnel wire/upstream wire/upstream_answer wire/upstream_connect,\
	$(BUILD)/obj/src/$(s).o): private SMALLER := -Oz
$(BUILD)/obj/src/sim/%.o: private SMALLER := -Os
endif
$(BUILD)/obj/%.o: %.c $(BUILD)/flags
	$(make_dir)
	$(call say,CC)$(compile) $(includes)

archive = rm -f $@ && ar rcs $@ $(filter %.o,$^)
$(BUILD)/libhapax.a: $(LIB_OBJ) $(BUILD)/sources
	$(call say,AR)$(archive)
# What tests see: the library, all of its inner functions, and the simulator.
$(BUILD)/libhapax-test.a: $(LIB_OBJ) $(SIM_OBJ) $(BUILD)/sources
	$(call say,AR)$(archive)
$(BUILD)/libtest-support.a: $(SUPPORT_OBJ) $(BUILD)/sources
	$(call say,AR)$(archive)

$(BUILD)/libhapax.so: $(LIB_OBJ) packaging/hapax.map $(BUILD)/sources
	$(call say,LINK)$(link) -shared -Wl,-soname,libhapax.so.$(SOVERSION) -Wl,-z,defs \
		-Wl,--version-script=packaging/hapax.map $(filter %.o,$^) $(pkg_libs)
	@ln -sf libhapax.so $(BUILD)/libhapax.so.$(SOVERSION)

$(BUILD)/hapax: $(CLI_OBJ) $(SIM_OBJ) $(BUILD)/libhapax.a scripts/link-packed.sh scripts/literals.ld scripts/embed-packed.sh
	$(call say,LINK)$(link_program) $(filter %.o %.a,$^) $(pkg_libs)

define example_rule
$(BUILD)/examples/$(basename $(notdir $(1))): $(call objects,$(1)) $(BUILD)/libhapax.a
	$$(make_dir)
	$$(call say,LINK)$$(link) $$^ $$(pkg_libs)
endef
$(foreach e,$(EXAMPLE_SRC),$(eval $(call example_rule,$(e))))

# There are hundreds: what only a debugger reads is half of the time to link them, and most of their size. (`make DEBUG=1` has it,
# and what a sanitizer says needs it.)
link_test = $(CC) $(SANITIZE) $(CFLAGS) $(LDFLAGS) $(quick_ld) $(if $(DEBUG)$(SANITIZE),,-Wl,-S) -o $@
$(BUILD)/tests/%: $(BUILD)/obj/tests/%.o $(BUILD)/libtest-support.a $(BUILD)/libhapax-test.a
	$(make_dir)
	$(call say,LINK)$(link_test) $^ $(test_libs) $(pkg_libs)

$(BUILD)/libfuzzed.a: $(call objects,$(FUZZED_SRC)) $(BUILD)/sources
	$(call say,AR)$(archive)
$(BUILD)/fuzz_%: $(BUILD)/obj/tests/fuzz/fuzz_%.o $(BUILD)/libfuzzed.a
	$(make_dir)
	$(call say,LINK)$(link) $(quick_ld) -fsanitize=fuzzer $^ $(pkg_libs)

$(BUILD)/bench/raw_%: $(BUILD)/obj/bench/raw_%.o
	$(make_dir)
	$(call say,LINK)$(link) $^ $(pkg_libs)
$(BUILD)/bench/%: $(BUILD)/obj/bench/%.o $(BUILD)/libhapax.a
	$(make_dir)
	$(call say,LINK)$(link) $^ $(pkg_libs)

.SECONDARY:

-include $(shell find $(BUILD)/obj -name '*.d' 2>/dev/null)

endif
