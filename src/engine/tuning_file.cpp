#include "engine/tuning_file.h"

#include <random>

#include "base/error.h"
#include "base/files.h"
#include "base/json.h"
#include "base/publication.h"
#include "base/sha256.h"

namespace tandem::engine {
namespace {

constexpr std::string_view schema = "tandem.tuning";
constexpr uint32_t version = 1;
constexpr uint64_t max_bytes = 16 << 20;

// What a measurement is true of.
Json identity(const gpu::AdapterInfo& adapter) {
  return {{"adapter", adapter.name},
          {"driver", adapter.driver},
          {"backend", adapter.backend},
          {"library", adapter.library},
          {"tiers", gpu::tier_names(adapter.tiers)},
          {"kernel_closure", gpu::closure_digest()}};
}

Json to_json(const ops::TimedTiling& timed) {
  return {{"units", timed.tiling.units},
          {"lanes", timed.tiling.lanes},
          {"workgroup", timed.tiling.workgroup},
          {"ahead", timed.tiling.ahead},
          {"one_us", timed.time.one},
          {"few_us", timed.time.few}};
}

Result<ops::TimedTiling> read_timed(JsonObject object) {
  ops::TimedTiling timed;
  TRY_ASSIGN(timed.tiling.units, object.get<bool>("units"));
  TRY_ASSIGN(timed.tiling.lanes, object.get<uint32_t>("lanes"));
  TRY_ASSIGN(timed.tiling.workgroup, object.get<uint32_t>("workgroup"));
  TRY_ASSIGN(timed.tiling.ahead, object.get<uint32_t>("ahead"));
  TRY_ASSIGN(timed.time.one, object.get<double>("one_us"));
  TRY_ASSIGN(timed.time.few, object.get<double>("few_us"));
  TRY(object.finish());
  if (timed.time.one < 0 || timed.time.few < 0) {
    return fail(ErrorCode::bad_value, "{}: expected times, found {} and {} us", object.where(),
                timed.time.one, timed.time.few);
  }
  if (ops::is_possible(timed.tiling)) return timed;
  return fail(
      ErrorCode::bad_value,
      "{}: expected powers of two up to 256, no more lanes than a workgroup has, and 1 to 4 "
      "ahead; found {} lanes, a workgroup of {}, {} ahead",
      object.where(), timed.tiling.lanes, timed.tiling.workgroup, timed.tiling.ahead);
}

Result<ops::TunedProduct> read_product(JsonObject object) {
  ops::TunedProduct product;
  TRY_ASSIGN(const JsonObject rules, object.get<JsonObject>("rules"));
  TRY_ASSIGN(const JsonObject chosen, object.get<JsonObject>("chosen"));
  TRY(object.finish());
  TRY_ASSIGN(product.rules, read_timed(rules));
  TRY_ASSIGN(product.chosen, read_timed(chosen));
  return product;
}

Result<void> check_identity(JsonObject& object, const gpu::AdapterInfo& adapter) {
  TRY_ASSIGN(const auto found_schema, object.get<std::string>("schema"));
  TRY_ASSIGN(const auto found_version, object.get<uint32_t>("version"));
  TRY_ASSIGN(const JsonValue measured_on, object.get<JsonValue>("measured_on"));
  if (found_schema != schema || found_version != version) {
    return fail(ErrorCode::bad_value, "{}: expected {} {}, found {} {}", object.where("schema"),
                schema, version, found_schema, found_version);
  }
  if (measured_on.json() == identity(adapter)) return {};
  return fail(ErrorCode::bad_value, "{}: expected {}, found {}", measured_on.where(),
              identity(adapter).dump(), measured_on.json().dump());
}

}  // namespace

std::filesystem::path tuning_file(const std::filesystem::path& folder,
                                  const gpu::AdapterInfo& adapter) {
  return folder / (sha256(canonical_json(identity(adapter))).hex().substr(0, 16) + ".json");
}

Result<ops::TunedProducts> read_tuning(const std::filesystem::path& file,
                                       const gpu::AdapterInfo& adapter) {
  TRY_ASSIGN(const std::string text, read_file(file, max_bytes));
  Json json;
  TRY_ASSIGN(JsonObject object, open_json_object(text, file.string(), json));
  TRY(check_identity(object, adapter));
  TRY_ASSIGN(JsonObject products, object.get<JsonObject>("products"));
  TRY(object.finish());
  ops::TunedProducts tuned;
  for (const std::string& shape : products.keys()) {
    TRY_ASSIGN(const JsonObject product, products.get<JsonObject>(shape));
    TRY_ASSIGN(tuned[shape], read_product(product));
  }
  return tuned;
}

Result<void> write_tuning(const std::filesystem::path& file, const gpu::AdapterInfo& adapter,
                          const ops::TunedProducts& tuned) {
  Json products = Json::object();
  for (const auto& [shape, product] : tuned) {
    products[shape] = {{"rules", to_json(product.rules)}, {"chosen", to_json(product.chosen)}};
  }
  std::error_code error;
  std::filesystem::create_directories(file.parent_path(), error);
  if (error) {
    return fail(ErrorCode::io, "{}: cannot make the folder: {}", file.parent_path().string(),
                error.message());
  }
  // A publication replaces nothing, so a new file takes the place of the old one when it is whole.
  std::filesystem::path fresh = file;
  fresh += fmt::format(".{:08x}", std::random_device{}());
  TRY_ASSIGN(FilePublication publication, FilePublication::begin(fresh));
  TRY(publication.file().write(canonical_json({{"schema", schema},
                                               {"version", version},
                                               {"measured_on", identity(adapter)},
                                               {"products", std::move(products)}})));
  TRY(publication.commit());
  std::filesystem::rename(fresh, file, error);
  if (!error) return {};
  const std::string reason = error.message();
  std::filesystem::remove(fresh, error);
  return fail(ErrorCode::io, "{}: cannot be replaced: {}", file.string(), reason);
}

}  // namespace tandem::engine
