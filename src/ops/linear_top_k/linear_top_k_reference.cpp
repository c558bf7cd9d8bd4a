// The product with its largest values, from their references.
#include "ops/linear/linear.h"
#include "ops/linear_top_k/linear_top_k.h"
#include "ops/top_k/top_k.h"

namespace tandem::ops {

void linear_top_k_reference(const HostMatrix& weights, uint32_t k, uint32_t rows,
                            std::span<const float> x, std::span<float> values,
                            std::span<uint32_t> indices) {
  std::vector<float> product(size_t{rows} * weights.rows);
  linear_reference(weights, Epilogue::none, 0, rows, x, {}, product);
  top_k_reference(weights.rows, k, product, values, indices);
}

}  // namespace tandem::ops
