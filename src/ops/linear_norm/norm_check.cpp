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
                         .max_rows = 1});
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
  const uint32_t columns = product_.weights.columns;
  const auto floats = [&](size_t count) -> Result<gpu::Buffer> {
    const std::vector<float> values = fixed_floats(count);
    return upload(*device_, std::as_bytes(std::span(values)));
  };
  const Step one{.rows = 1};
  const uint64_t y_bytes = uint64_t{outputs(product_)} * sizeof(float);
  TRY_ASSIGN(const FixedWeights weights,
             FixedWeights::make(*device_, product_.weights.type,
                                std::min(product_.weights.rows, most_group_rows), columns));
  TRY_ASSIGN(const gpu::Buffer step, upload(*device_, std::as_bytes(std::span(&one, 1))));
  TRY_ASSIGN(const gpu::Buffer stream, floats(branch_begin(columns) + columns));
  TRY_ASSIGN(const gpu::Buffer vector, floats(columns));
  TRY_ASSIGN(const gpu::Buffer h, device_->make_buffer(columns * sizeof(float), "norm check"));
  TRY_ASSIGN(const gpu::Buffer x, device_->make_buffer(columns * sizeof(float), "norm check"));
  TRY_ASSIGN(const gpu::Buffer y, device_->make_buffer(y_bytes, "norm check"));
  TRY_ASSIGN(const gpu::Buffer expected, device_->make_buffer(y_bytes, "norm check"));
  auto& [together, add_norm, few, read, read_expected] = *ways_;
  const gpu::Binding uniform = gpu::uniform(step.view()), any = gpu::read(vector.view());
  const gpu::Binding values = gpu::read(weights.values.view());
  const gpu::Binding scales = gpu::read(weights.bound_scales());
  {
    gpu::CommandList commands(*device_);
    TRY(dispatch(commands, together,
                 {uniform, values, scales, gpu::read(stream.view()), any, any, any,
                  gpu::read_write(h.view()), gpu::read_write(y.view())}));
    TRY_ASSIGN(read, run(commands, y.view()));
  }
  const gpu::View branch_view =
      stream.view().part(branch_begin(columns) * sizeof(float), columns * sizeof(float));
  const std::vector<float> before = fixed_floats(columns);
  TRY(device_->write(h.view(), std::as_bytes(std::span(before))));
  gpu::CommandList commands(*device_);
  TRY(dispatch(commands, add_norm,
               {uniform, gpu::read(branch_view), any, any, gpu::read_write(h.view()), any,
                gpu::read_write(x.view())}));
  TRY(dispatch(
      commands, few,
      {uniform, values, scales, gpu::read(x.view()), any, gpu::read_write(expected.view())}));
  TRY_ASSIGN(read_expected, run(commands, expected.view()));
  return {};
}

Result<gpu::Readback> NormCheck::run(const gpu::CommandList& commands, gpu::View y) {
  gpu::Submission submission;
  submission.items.push_back({&commands, {1, 1}});
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
  return y == expected;
}

}  // namespace tandem::ops
