/* What a check has found, in words or as JSON: for hapax check, and for whatever refuses a definition as that does. */
#pragma once

#include "model/findings.h"

#define CHECK_REPORT_BYTES_MAX (64u << 20)

/* A line for each finding, and one that sums up. */
void check_report_words(const struct findings *findings, size_t files_n, bool colour, struct strbuf *out);
/* {"findings":[…],"files":2,"errors":1,"warnings":0} on one line. */
void check_report_json(const struct findings *findings, size_t files_n, struct strbuf *out);
/* HX_DEFINITION_INVALID where there are errors, and, if that is `strict`, where there are warnings. */
enum hx_code check_verdict(const struct findings *findings, bool strict, struct hx_error *err) HX_MUST_CHECK;
