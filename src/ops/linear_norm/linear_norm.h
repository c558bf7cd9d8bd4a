// A residual step (add_norm) and the product of what it yields, in one kernel, for a single row:
//   h' = (h + rms_norm(b) * weight) * scalar
//   y = the product with x = rms_norm(h') * next_weight
// Every workgroup makes x for itself, so that nothing waits for a dispatch of its own.
#pragma once

#include <memory>

#include "ops/linear/linear.h"

namespace tandem::ops {

struct LinearNorm {
  // Of route `one`, epilogue none or gelu_pair, x_format int8 or lanes; x is not used.
  Linear product;
  float epsilon = 0;
  // Both of [hidden], hidden = product.weights.columns: h, and from `branch` floats on b.
  gpu::View stream;
  uint64_t branch = 0;
  gpu::View weight;       // [hidden]
  gpu::View scalar;       // [1], or none: 1
  gpu::View next_weight;  // [hidden]
  gpu::View next_h;       // [hidden]
};

// Where the branch lies behind h: floats from it, as far as a binding's begin asks for.
constexpr uint64_t branch_begin(uint32_t hidden) {
  return (uint64_t{hidden} + aligned_floats - 1) / aligned_floats * aligned_floats;
}

// Whether the kernel can multiply so.
bool takes_norm(const Linear& product);

constexpr uint32_t linear_norm_workgroup = 256;  // invocations
// Rows of weights that a workgroup takes, at the most.
constexpr uint32_t most_group_rows = 4 * linear_norm_workgroup;

Route linear_norm_route(const LinearNorm& op, const gpu::AdapterInfo& adapter);
Result<void> record(gpu::CommandList& commands, const LinearNorm& op);

// Runs the step in the product once on fixed data, and the step before the product of the route
// `few`, all of whose rows are that same row. The device must outlive it.
class NormCheck {
 public:
  // `product` as LinearNorm has it, its branch at branch_begin, and whether there is a scalar. Asks
  // for the kernels, which are compiled in the background.
  static Result<NormCheck> begin(gpu::Device& device, const Linear& product, float epsilon,
                                 bool scaled);
  NormCheck(NormCheck&&) noexcept;
  NormCheck& operator=(NormCheck&&) noexcept;
  ~NormCheck();

  // Whether all rows have the same bits; said once. Goes on with the check, and says nothing while
  // the device is not done, but for `wait`.
  Result<std::optional<bool>> identical(bool wait);

 private:
  struct Ways;
  NormCheck(gpu::Device& device, const Linear& product);
  Result<void> submit();
  Result<gpu::Readback> run(const gpu::CommandList& commands, gpu::View y);

  gpu::Device* device_;
  Linear product_;
  std::unique_ptr<Ways> ways_;
};

// h and branch: [hidden]; h becomes h'. x_format int8 rounds x. y: [outputs].
void linear_norm_reference(const HostMatrix& weights, Epilogue epilogue, RowFormat x_format,
                           double epsilon, std::span<const float> branch,
                           std::span<const float> weight, float scalar, std::span<float> h,
                           std::span<const float> next_weight, std::span<float> y);

}  // namespace tandem::ops
