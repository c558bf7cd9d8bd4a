// The check that a product does a residual step as add_norm does, bit for bit, on this device.
#include <algorithm>

#include "base/error.h"
#include "ops/add_norm/add_norm.h"
#include "ops/fixed_data.h"
#include "ops/linear_norm/linear_norm.h"

namespace tandem::ops {

// Both ways, as far as the outputs of one workgroup of the step in the product go.
struct NormCheck::Ways {
  Route together, step, product;
  std::optional<gpu::Readback> y, expected;
};

NormCheck::NormCheck(gpu::Device& device, const Linear& product)
    : device_(&device), product_(product), ways_(std::make_unique<Ways>()) {}
NormCheck::NormCheck(NormCheck&&) noexcept = default;
NormCheck& NormCheck::operator=(NormCheck&&) noexcept = default;
NormCheck::~NormCheck() = default;

Result<NormCheck> NormCheck::begin(gpu::Device& device, const Linear& product, float epsilon,
                                   bool scaled) {
  NormCheck check(device, product);
  auto& [together, step, few, y, expected] = *check.ways_;
  // Any view says that there is one.
  const gpu::View some = product.weights.parts[0].values;
  const gpu::View scalar = scaled ? some : gpu::View{};
  together = linear_norm_route({.product = product,
                                .epsilon = epsilon,
                                .stream = {},
                                .branch = branch_begin(product.weights.columns),
                                .weight = {},
                                .scalar = scalar,
                                .next_weight = {},
                                .next_h = {}},
                               device.info());
  step = add_norm_route({.columns = product.weights.columns,
                         .epsilon = epsilon,
                         .step = {},
                         .x = {},
                         .weight = {},
                         .scalar = scalar,
                         .h = {},
                         .next_weight = some,
                         .y = {},
                         .y_format = product.x_format,
                         .max_rows = product.few_rows});
  check.product_.rows = RowRoute::few;
  few = linear_route(check.product_, product.weights.parts[0], device.info());
  // As many as have the outputs of one workgroup of the step in the product.
  const uint64_t groups = linear_norm_workgroup / tiling(product, device.info()).workgroup;
  few.grid.groups = std::min(few.grid.groups, groups);
  together.grid.groups = 1;
  for (const Route* route : {&together, &step, &few}) {
    TRY(device.kernel(route->kernel, route->constants));
  }
  return check;
}

Result<void> NormCheck::submit() {
  const uint32_t columns = product_.weights.columns, rows = product_.few_rows;
  const std::vector<float> stream_row = fixed_floats(branch_begin(columns) + columns);
  const auto repeated = [&](uint64_t begin) {
    std::vector<float> all;
    for (uint32_t row = 0; row < rows; ++row) {
      const auto first = stream_row.begin() + static_cast<ptrdiff_t>(begin);
      all.insert(all.end(), first, first + columns);
    }
    return all;
  };
  const auto floats = [&](const std::vector<float>& values) {
    return upload(*device_, std::as_bytes(std::span(values)));
  };
  const auto empty = [&](uint64_t count) {
    return device_->make_buffer(count * sizeof(float), "norm check");
  };
  const Step step_value{.rows = rows};
  TRY_ASSIGN(const FixedWeights weights,
             FixedWeights::make(*device_, product_.weights.type,
                                std::min(product_.weights.rows, most_group_rows), columns));
  TRY_ASSIGN(const gpu::Buffer step, upload(*device_, std::as_bytes(std::span(&step_value, 1))));
  TRY_ASSIGN(const gpu::Buffer vector, floats(fixed_floats(columns)));
  TRY_ASSIGN(const gpu::Buffer stream, floats(stream_row));
  TRY_ASSIGN(const gpu::Buffer next_h, empty(columns));
  TRY_ASSIGN(const gpu::Buffer y, empty(outputs(product_)));
  TRY_ASSIGN(const gpu::Buffer h, floats(repeated(0)));
  TRY_ASSIGN(const gpu::Buffer branch, floats(repeated(branch_begin(columns))));
  TRY_ASSIGN(const gpu::Buffer x, empty(uint64_t{rows} * columns));
  TRY_ASSIGN(const gpu::Buffer expected, empty(uint64_t{rows} * outputs(product_)));
  auto& [together, add_norm, few, read, read_expected] = *ways_;
  const gpu::Binding uniform = gpu::uniform(step.view()), any = gpu::read(vector.view());
  const gpu::Binding values = gpu::read(weights.values.view());
  const gpu::Binding scales = gpu::read(weights.bound_scales());
  gpu::CommandList in_product(*device_), before(*device_);
  TRY(dispatch(in_product, together,
               {uniform, values, scales, gpu::read(stream.view()), any, any, any,
                gpu::read_write(next_h.view()), gpu::read_write(y.view())}));
  TRY(dispatch(before, add_norm,
               {uniform, gpu::read(branch.view()), any, any, gpu::read_write(h.view()), any,
                gpu::read_write(x.view())}));
  TRY(dispatch(
      before, few,
      {uniform, values, scales, gpu::read(x.view()), any, gpu::read_write(expected.view())}));
  TRY_ASSIGN(read, run(in_product, y.view()));
  TRY_ASSIGN(read_expected, run(before, expected.view()));
  return {};
}

Result<gpu::Readback> NormCheck::run(const gpu::CommandList& commands, gpu::View y) {
  gpu::Submission submission;
  submission.items.push_back({&commands, {product_.few_rows, 1}});
  submission.read_back = y;
  return device_->submit(submission);
}

Result<std::optional<bool>> NormCheck::identical(bool wait) {
  if (wait) TRY(device_->finish_kernels());
  TRY_ASSIGN(const uint32_t unfinished, device_->unfinished());
  if (unfinished > 0) return std::nullopt;
  if (!ways_->y) TRY(submit());
  for (gpu::Readback* readback : {&*ways_->y, &*ways_->expected}) {
    if (wait) TRY(device_->wait(*readback));
    if (!readback->ready()) return std::nullopt;
  }
  TRY_ASSIGN(const std::vector<std::byte> y, ways_->y->take());
  TRY_ASSIGN(const std::vector<std::byte> expected, ways_->expected->take());
  for (auto row = expected.begin(); row != expected.end(); row += std::ssize(y)) {
    if (!std::equal(y.begin(), y.end(), row)) return false;
  }
  return true;
}

}  // namespace tandem::ops
