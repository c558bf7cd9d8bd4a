// tandem devices: the WebGPU adapters and what they can do.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.h"
#include "cli/command.h"
#include "gpu/device.h"

namespace tandem::cli {
namespace {

Result<void> run() {
  TRY_ASSIGN(const std::vector<gpu::AdapterInfo> found, gpu::adapters());
  if (found.empty()) {
    return fail(ErrorCode::no_adapter,
                "no WebGPU adapter: install a Vulkan driver, or run through tools/run, which finds "
                "a software one");
  }
  for (const gpu::AdapterInfo& adapter : found) {
    const gpu::Limits& limits = adapter.limits;
    fmt::print("{}{}\n", adapter.name, adapter.software ? "  (software)" : "");
    fmt::print("  vendor    {}\n", adapter.vendor);
    fmt::print("  driver    {}\n  backend   {}\n  library   {}\n", adapter.driver, adapter.backend,
               adapter.library);
    fmt::print("  tiers     {}\n", fmt::join(gpu::tier_names(adapter.tiers), ", "));
    fmt::print("  buffers   {} bytes, bindings {} bytes, {} storage buffers a kernel\n",
               limits.max_buffer_bytes, limits.max_binding_bytes, limits.max_storage_buffers);
    fmt::print("  workgroup {} invocations, {} bytes\n", limits.max_workgroup_invocations,
               limits.max_workgroup_bytes);
  }
  fmt::print("kernel closure {}\n", gpu::closure_digest());
  return {};
}

}  // namespace

Command devices(CLI::App& parent) {
  CLI::App* app =
      parent.add_subcommand("devices", "List the WebGPU adapters, their tiers and limits");
  app->footer(
      "Choose one with --adapter or the environment variable TANDEM_ADAPTER: a part of its name, "
      "or "
      "\"software\".\nWithout a choice the fastest is taken, a software one only if there is no "
      "other.");
  return {app, run};
}

}  // namespace tandem::cli
