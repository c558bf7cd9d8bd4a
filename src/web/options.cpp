#include "web/options.h"

#include <charconv>

namespace tandem::web {
namespace {

// Assigns a key's value, where it is there.
template <class T, class Target>
Result<void> assign(JsonObject& object, std::string_view key, Target& target) {
  TRY_ASSIGN(const std::optional<T> value, object.find<T>(key));
  if (value) target = static_cast<Target>(*value);
  return {};
}

template <class T>
Result<void> assign(JsonObject& object, std::string_view key, std::optional<T>& target) {
  TRY_ASSIGN(const std::optional<T> value, object.find<T>(key));
  if (value) target = *value;
  return {};
}

// A number, or the digits of one, as JavaScript's numbers are exact only up to 2^53.
Result<uint64_t> read_seed(const JsonValue& value) {
  if (!value.json().is_string()) return value.as<uint64_t>();
  TRY_ASSIGN(const std::string digits, value.as<std::string>());
  uint64_t seed = 0;
  const char* end = digits.data() + digits.size();
  const auto [read, error] = std::from_chars(digits.data(), end, seed);
  if (digits.empty() || read != end || error != std::errc()) {
    return fail(ErrorCode::bad_value, "{}: expected an integer below 2^64, found {}", value.where(),
                value.found());
  }
  return seed;
}

Result<SampleOptions> read_sampling(JsonObject object, SampleOptions sampling) {
  TRY(assign<double>(object, "temperature", sampling.temperature));
  TRY(assign<uint32_t>(object, "topK", sampling.top_k));
  TRY(assign<double>(object, "topP", sampling.top_p));
  TRY(assign<double>(object, "minP", sampling.min_p));
  TRY(assign<double>(object, "repetitionPenalty", sampling.repetition_penalty));
  TRY(assign<uint32_t>(object, "penaltyWindow", sampling.penalty_window));
  TRY_ASSIGN(const std::optional<JsonValue> seed, object.find<JsonValue>("seed"));
  if (seed) {
    TRY_ASSIGN(sampling.seed, read_seed(*seed));
  }
  TRY(object.finish());
  return sampling;
}

Result<std::vector<TokenBias>> read_biases(const std::vector<JsonObject>& objects) {
  std::vector<TokenBias> biases;
  for (JsonObject object : objects) {
    TRY_ASSIGN(const uint32_t token, object.get<uint32_t>("token"));
    TRY_ASSIGN(const double bias, object.get<double>("bias"));
    TRY(object.finish());
    biases.push_back({token, static_cast<float>(bias)});
  }
  return biases;
}

Result<Mtp> read_mtp(const std::string& where, std::string_view mtp) {
  if (mtp == "automatic") return Mtp::automatic;
  if (mtp == "on") return Mtp::on;
  if (mtp == "off") return Mtp::off;
  return fail(ErrorCode::bad_value, "{}: expected automatic, on or off, found {}", where, mtp);
}

Json to_json(const SampleOptions& sampling) {
  return {{"temperature", sampling.temperature},
          {"topK", sampling.top_k},
          {"topP", sampling.top_p},
          {"minP", sampling.min_p},
          {"repetitionPenalty", sampling.repetition_penalty},
          {"penaltyWindow", sampling.penalty_window},
          {"seed", sampling.seed}};
}

// One of two words; the first if there is none.
Result<std::string> find_one_of(JsonObject& object, std::string_view key, std::string_view first,
                                std::string_view second) {
  TRY_ASSIGN(const std::optional<std::string> found, object.find<std::string>(key));
  const std::string word = found.value_or(std::string(first));
  if (word == first || word == second) return word;
  return fail(ErrorCode::bad_value, "{}: expected {} or {}, found {}", object.where(key), first,
              second, word);
}

}  // namespace

Result<EngineOptions> read_engine_options(std::string_view text) {
  Json json;
  TRY_ASSIGN(JsonObject object, open_json_object(text, "options", json));
  EngineOptions options;
  TRY(assign(object, "context", options.context));
  TRY(assign(object, "inputBound", options.input_bound));
  TRY(assign(object, "drafts", options.drafts));
  TRY(assign<uint32_t>(object, "roundsInFlight", options.rounds_in_flight));
  TRY(assign<std::vector<std::string>>(object, "disabledTiers", options.disabled_tiers));
  TRY_ASSIGN(const std::string kv, find_one_of(object, "kv", "f16", "f32"));
  if (kv == "f32") options.kv = KvPrecision::f32;
  TRY_ASSIGN(const std::string activations, find_one_of(object, "activations", "f32", "int8"));
  if (activations == "int8") options.activations = Activations::int8;
  TRY(object.finish());
  return options;
}

Result<gpu::AdapterInfo> read_adapter(std::string_view text) {
  Json json;
  TRY_ASSIGN(JsonObject object, open_json_object(text, "adapter", json));
  gpu::AdapterInfo info;
  info.backend = "WebGPU";
  info.library = "browser WebGPU";
  TRY_ASSIGN(info.name, object.get<std::string>("name"));
  TRY_ASSIGN(info.vendor, object.get<std::string>("vendor"));
  TRY_ASSIGN(info.driver, object.get<std::string>("driver"));
  TRY_ASSIGN(info.software, object.get<bool>("software"));
  TRY_ASSIGN(info.timestamps, object.get<bool>("timestamps"));
  TRY_ASSIGN(info.tiers.subgroups, object.get<bool>("subgroups"));
  TRY_ASSIGN(info.tiers.dp4a, object.get<bool>("dp4a"));
  TRY_ASSIGN(info.tiers.f16, object.get<bool>("f16"));
  TRY_ASSIGN(info.limits.max_buffer_bytes, object.get<uint64_t>("maxBufferSize"));
  TRY_ASSIGN(info.limits.max_binding_bytes, object.get<uint64_t>("maxStorageBufferBindingSize"));
  TRY_ASSIGN(info.limits.binding_alignment, object.get<uint32_t>("bindingAlignment"));
  TRY_ASSIGN(info.limits.max_workgroup_bytes,
             object.get<uint32_t>("maxComputeWorkgroupStorageSize"));
  TRY_ASSIGN(info.limits.max_workgroup_invocations,
             object.get<uint32_t>("maxComputeInvocationsPerWorkgroup"));
  TRY_ASSIGN(info.limits.max_workgroups_per_dimension,
             object.get<uint32_t>("maxComputeWorkgroupsPerDimension"));
  TRY_ASSIGN(info.limits.max_storage_buffers,
             object.get<uint32_t>("maxStorageBuffersPerShaderStage"));
  TRY(object.finish());
  return info;
}

Result<std::vector<Message>> read_messages(std::string_view text) {
  TRY_ASSIGN(const Json json, parse_json(text, "messages"));
  TRY_ASSIGN(const std::vector<JsonObject> objects,
             JsonValue(json, "messages").as<std::vector<JsonObject>>());
  std::vector<Message> messages;
  for (JsonObject object : objects) {
    TRY_ASSIGN(std::string role, object.get<std::string>("role"));
    TRY_ASSIGN(std::string content, object.get<std::string>("content"));
    TRY(object.finish());
    messages.push_back({std::move(role), std::move(content)});
  }
  return messages;
}

Result<GenerateOptions> read_generate_options(std::string_view text,
                                              const SampleOptions& sampling) {
  Json json;
  TRY_ASSIGN(JsonObject object, open_json_object(text, "options", json));
  GenerateOptions options;
  TRY(assign<uint32_t>(object, "maxTokens", options.max_tokens));
  TRY(assign<bool>(object, "ignoreEos", options.ignore_eos));
  TRY_ASSIGN(const auto asked, object.find<JsonObject>("sampling"));
  if (asked) {
    TRY_ASSIGN(options.sampling, read_sampling(*asked, sampling));
  }
  TRY_ASSIGN(const auto biases, object.find<std::vector<JsonObject>>("biases"));
  if (biases) {
    TRY_ASSIGN(options.biases, read_biases(*biases));
  }
  TRY(assign<std::vector<std::string>>(object, "stopStrings", options.stop_strings));
  TRY_ASSIGN(const std::optional<std::string> mtp, object.find<std::string>("mtp"));
  if (mtp) {
    TRY_ASSIGN(options.mtp, read_mtp(object.where("mtp"), *mtp));
  }
  TRY(object.finish());
  return options;
}

Json to_json(const EngineInfo& info) {
  return {{"artifact", info.artifact},
          {"adapter", info.adapter},
          {"driver", info.driver},
          {"library", info.library},
          {"software", info.software},
          {"tiers", info.tiers},
          {"kernelClosure", info.kernel_closure},
          {"sampling", to_json(info.sampling)},
          {"vocabulary", info.vocabulary},
          {"context", info.context},
          {"inputBound", info.input_bound},
          {"drafts", info.drafts},
          {"kv", info.kv == KvPrecision::f16 ? "f16" : "f32"},
          {"activations", info.activations == Activations::int8 ? "int8" : "f32"},
          {"weightBytes", info.weight_bytes},
          {"gpuBytes", info.gpu_bytes},
          {"kernels", info.kernels},
          {"rowShapes", info.row_shapes},
          {"rowShapesDifferent", info.row_shapes_different},
          {"loadMs", info.load_ms},
          {"compileMs", info.compile_ms}};
}

Json to_json(const GenerateStats& stats) {
  return {{"promptTokens", stats.prompt_tokens},
          {"reusedTokens", stats.reused_tokens},
          {"generatedTokens", stats.generated_tokens},
          {"rounds", stats.rounds},
          {"drafted", stats.drafted},
          {"accepted", stats.accepted},
          {"discarded", stats.discarded},
          {"firstTokenMs", stats.first_token_ms},
          {"decodeMs", stats.decode_ms},
          {"prefillTokensPerSecond", stats.prefill_tokens_per_second()},
          {"decodeTokensPerSecond", stats.decode_tokens_per_second()},
          {"acceptance", stats.acceptance()},
          {"tokensPerRound", stats.tokens_per_round()}};
}

Json to_json(const Generation& generation) {
  return {{"ids", generation.ids},
          {"text", generation.text},
          {"stop", std::string(name(generation.stop))},
          {"stats", to_json(generation.stats)}};
}

}  // namespace tandem::web
