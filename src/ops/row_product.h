// What the operators share that multiply a row by a small matrix in one workgroup, with
// row_product.wgsl: their limits and their lanes.
#pragma once

#include "ops/op.h"

namespace tandem::ops {

// Refuses weights that the kernel cannot multiply with: it takes one part, whose columns are whole
// blocks of 32. A workgroup computes `rows` of its rows: up to 1024, a multiple of `row_step`.
// `lanes` are 0 or a power of two up to 32.
Result<void> check_row_product(std::string_view op, const Matrix& weights, uint32_t rows,
                               uint32_t row_step, uint32_t lanes);

// How many lanes share a weight row: so many that all 256 invocations work on `rows` weight rows at
// once, up to 32, but no more than there are blocks in a row.
uint32_t row_product_lanes(uint32_t rows, uint32_t columns, const gpu::AdapterInfo& adapter);

// Refuses weights that are not whole blocks of 32 columns in one part.
Result<void> check_one_part(std::string_view op, const Matrix& weights);

// Whether one workgroup computes a whole product, which the kernel can, and what follows faster
// than many with another dispatch after it.
bool pays_in_one_workgroup(const Matrix& weights);

uint64_t weight_bytes(const Matrix& weights);

}  // namespace tandem::ops
