/*
 * The picture of a definition, for `hapax graph`: SVG 1.1 text, readable on white and on paper, without scripts and without
 * anything from outside.
 *
 *   definition ─▶ sketch (graph_entity.c, graph_run.c, graph_batch.c) ─▶ places (graph_layout.h) ─▶ SVG (graph_paint.c)
 *
 * Pure, and the same text for the same definition everywhere. A definition at its limits is drawn too, in less than a second.
 */
#pragma once

#include "model/definition.h"

#define GRAPH_BYTES_MAX (64u << 20)

/* Appends it. HX_TOO_LARGE, HX_NO_MEMORY: *out is of no use then. */
enum hx_code graph_picture(const struct definition *definition, struct strbuf *out, struct hx_error *err) HX_MUST_CHECK;
/*
 * Appends where in it what stands, for who draws something over it: {"width", "height", "places": [{"name", "x", "y", "width",
 * "height"}]}, the name of a status, of a claim's status or of a step. Likewise.
 */
enum hx_code graph_places(const struct definition *definition, struct strbuf *out, struct hx_error *err) HX_MUST_CHECK;
