// Command lists, and what a submission of them dispatches.
#include "gpu/command_list.h"

#include "base/error.h"
#include "gpu/checks.h"

namespace tandem::gpu {

Result<void> CommandList::State::check_buffers(const Device::State& owner) {
  if (freed_buffers == owner.freed_buffers) return {};
  for (const uint32_t buffer : buffers) TRY(owner.buffer_of({.buffer = buffer}));
  freed_buffers = owner.freed_buffers;
  return {};
}

CommandList::CommandList(Device& device) : state_(new State{.device = &device}) {}
CommandList::CommandList(CommandList&&) noexcept = default;
CommandList& CommandList::operator=(CommandList&&) noexcept = default;
CommandList::~CommandList() = default;

Device& CommandList::device() const { return *state_->device; }
uint32_t CommandList::dispatch_count() const {
  return static_cast<uint32_t>(state_->dispatches.size());
}

std::vector<DispatchInfo> CommandList::dispatches() const {
  std::vector<DispatchInfo> infos;
  for (const Dispatch& dispatch : state_->dispatches) infos.push_back(dispatch.info);
  return infos;
}

Result<void> CommandList::dispatch(Kernel number, std::span<const Binding> bindings, Grid grid,
                                   const Note& note) {
  Device::State& device = *state_->device->state_;
  TRY(device.errors.take());
  if (number >= device.kernels.size()) {
    return fail(ErrorCode::gpu_validation, "kernel number {}, expected below {}", number,
                device.kernels.size());
  }
  const CompiledKernel& kernel = device.kernels[number];
  for (size_t i = 0; i < bindings.size(); ++i) {
    if (const auto buffer = device.buffer_of(bindings[i].view); !buffer) {
      return fail(buffer.error().code, "kernel {}, binding {}: {}", kernel.name, i,
                  buffer.error().message);
    }
  }
  TRY(check_bindings(kernel.name, kernel.bindings, bindings, device.info.limits));
  TRY_ASSIGN(BindGroup bind_group, device.bind(number, bindings));
  const std::string& label = note.label.empty() ? kernel.description : note.label;
  for (const Binding& binding : bindings) state_->buffers.push_back(binding.view.buffer);
  state_->dispatches.push_back(
      {number, std::move(bind_group),
       info_of(*device.labels.insert(label).first, grid, bindings, note.traffic)});
  return {};
}

Result<std::vector<SizedDispatch>> Device::State::sized_dispatches(
    const Device& of, const Submission& submission) const {
  std::vector<SizedDispatch> dispatches;
  for (const Submission::Item& item : submission.items) {
    if (!item.commands || &item.commands->device() != &of) {
      return fail(ErrorCode::gpu_validation,
                  "a submission without a command list, or with one of another device");
    }
    CommandList::State& list = *item.commands->state_;
    TRY(list.check_buffers(*this));
    for (const Dispatch& dispatch : list.dispatches) {
      const CompiledKernel& kernel = kernels[dispatch.kernel];
      if (kernel.error) return tl::unexpected<Error>(*kernel.error);
      TRY_ASSIGN(const Workgroups workgroups,
                 sized(kernel.name, dispatch.info.grid, item.extent, info.limits));
      dispatches.push_back({&dispatch, &kernel, item.extent, workgroups});
    }
  }
  return dispatches;
}

std::vector<DispatchTime> untimed(std::span<const SizedDispatch> dispatches) {
  std::vector<DispatchTime> times;
  for (const SizedDispatch& sized : dispatches) {
    times.push_back({sized.dispatch->info, sized.extent});
  }
  return times;
}

}  // namespace tandem::gpu
