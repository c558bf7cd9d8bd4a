// tandem devices: the WebGPU adapters and what they can do.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <memory>
#include <optional>
#include <string>

#include "base/error.h"
#include "cli/command.h"
#include "cli/limits_file.h"
#include "gpu/device.h"

namespace tandem::cli {
namespace {

void print_adapter(const gpu::AdapterInfo& adapter) {
  const gpu::Limits& limits = adapter.limits;
  fmt::print("{}{}\n", printable(adapter.name), adapter.software ? "  (software)" : "");
  fmt::print("  vendor    {}\n", printable(adapter.vendor));
  fmt::print("  driver    {}\n  backend   {}\n  library   {}\n", printable(adapter.driver),
             adapter.backend, adapter.library);
  fmt::print("  tiers     {}\n", fmt::join(gpu::tier_names(adapter.tiers), ", "));
  fmt::print("  timing    {}\n", adapter.timestamps ? "GPU timestamps" : "no GPU timestamps");
  fmt::print("  buffers   {} bytes, bindings {} bytes, {} storage buffers a kernel\n",
             limits.max_buffer_bytes, limits.max_binding_bytes, limits.max_storage_buffers);
  fmt::print("  workgroup {} invocations, {} bytes\n", limits.max_workgroup_invocations,
             limits.max_workgroup_bytes);
}

Result<void> print_all() {
  TRY_ASSIGN(const std::vector<gpu::AdapterInfo> found, gpu::adapters());
  if (found.empty()) {
    return fail(ErrorCode::no_adapter,
                "no WebGPU adapter: install a Vulkan driver, or run through tools/run, which finds "
                "a software one");
  }
  for (const gpu::AdapterInfo& adapter : found) print_adapter(adapter);
  fmt::print("kernel closure {}\n", gpu::closure_digest());
  return {};
}

Result<void> run(const std::optional<std::string>& limits_of) {
  if (!limits_of) return print_all();
  TRY_ASSIGN(const gpu::AdapterInfo adapter, gpu::adapter(*limits_of));
  fmt::print("{}", limits_text(adapter.limits));
  return {};
}

}  // namespace

Command devices(CLI::App& parent) {
  const auto limits_of = std::make_shared<std::optional<std::string>>();
  CLI::App* app =
      parent.add_subcommand("devices", "List the WebGPU adapters, their tiers and limits");
  app->add_option("--limits", *limits_of,
                  "Print the limits of this adapter as JSON, for `tandem inspect --limits`");
  app->footer(
      "Choose one with --adapter or the environment variable TANDEM_ADAPTER: a part of its name, "
      "or "
      "\"software\".\nWithout a choice the fastest is taken, a software one only if there is no "
      "other.");
  return {app, [limits_of] { return run(*limits_of); }};
}

}  // namespace tandem::cli
