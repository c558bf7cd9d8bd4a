// What a browser module exports: the engine as C functions that never wait. Every text comes as its
// bytes and goes out in the reply, whose address `tandem_reply` tells once.
#include <emscripten/emscripten.h>

#include <map>
#include <optional>

#include "artifact/ordering_watch.h"
#include "base/web.h"
#include "engine/opening.h"
#include "engine/profile.h"
#include "engine/session_sequence.h"
#include "model/build.h"
#include "web/options.h"

namespace tandem::web {
namespace {

#ifdef TANDEM_PROFILE
constexpr bool profile = true;
#else
constexpr bool profile = false;
#endif

// Whole in the module's bytes, as describe() says it: what `tandem release` takes it for.
constexpr char stamp[] = "tandem module " TANDEM_VERSION
#ifdef TANDEM_PLAIN
                         " plain"
#else
                         " mtp"
#endif
#ifdef TANDEM_PROFILE
                         " profile";
#else
                         " wall";
#endif

// What a function returns; engine.js has the same numbers.
enum Status { done, not_yet, refused };

// What it says besides: its value, or the error as JSON.
struct Reply {
  const char* data = nullptr;
  size_t bytes = 0;
};

// A load under way: the artifact first, then the opening over it.
struct Load {
  EngineOptions options;
  artifact::Artifact artifact;
  std::optional<artifact::OrderingWatch> ordering;
  std::optional<engine::Opening> opening;
};

// The module's state: nothing, a load or an engine. Sessions go before their engine.
std::string reply_text;
Reply reply;
std::optional<Load> loading;
std::optional<Engine> engine_;
std::map<uint32_t, Session> sessions;
uint32_t last_session = 0;

Status say(std::string text, Status status = done) {
  reply_text = std::move(text);
  reply = {reply_text.data(), reply_text.size()};
  return status;
}

Status say(const Json& json) {
  return say(json.dump(-1, ' ', false, Json::error_handler_t::replace));
}

Status say(const Error& error) {
  const Json json = {{"code", std::string(name(error.code))}, {"message", error.message}};
  return say(json.dump(-1, ' ', false, Json::error_handler_t::replace), refused);
}

Status say(const Result<void>& result) { return result ? say(std::string()) : say(result.error()); }
Status say(const Result<bool>& result) {
  if (!result) return say(result.error());
  return say(std::string(), *result ? done : not_yet);
}
template <class T>
Status say(const Result<T>& result) {
  return result ? say(Json(*result)) : say(result.error());
}
Status say(const Result<Json>& result) { return result ? say(*result) : say(result.error()); }

Json range_json(std::string_view file, uint64_t offset, uint64_t bytes, const Digest& sha256) {
  return {
      {"file", std::string(file)}, {"offset", offset}, {"bytes", bytes}, {"sha256", sha256.hex()}};
}

// The small file that a load reads first, or null.
Json file_json(const artifact::Artifact& artifact) {
  const auto& file = artifact.manifest().generation_config;
  return file ? range_json(file->file, 0, file->bytes, file->sha256) : Json();
}

// The pieces that it reads then, in their order.
Json pieces_json(const artifact::Artifact& artifact) {
  Json pieces = Json::array();
  for (const artifact::Piece& piece : artifact.plan().pieces) {
    pieces.push_back(range_json(artifact.manifest().shards[piece.shard].file, piece.offset,
                                piece.bytes, piece.sha256));
  }
  return pieces;
}

Result<EngineOptions> engine_options(std::string_view text) {
  TRY_ASSIGN(EngineOptions options, read_engine_options(text));
  if constexpr (!model::has_mtp) {
    if (options.drafts.value_or(0) > 0) {
      return fail(ErrorCode::unsupported,
                  "drafts: {}: this module is without MTP; take gemma4_mtp instead",
                  *options.drafts);
    }
    options.drafts = 0;
  }
  return options;
}

Result<artifact::Artifact> open_artifact(std::string_view manifest, const EngineOptions& options) {
  const auto plain = std::optional(artifact::View::plain);
  return artifact::Artifact::in_memory(manifest, options.drafts == 0u ? plain : std::nullopt);
}

Json plan_json(const artifact::Artifact& artifact, const model::Plan& plan) {
  const model::PlannedBuffer* largest = &plan.weights.front();
  for (const auto* buffers : {&plan.weights, &plan.scratch, &plan.sequence}) {
    for (const model::PlannedBuffer& buffer : *buffers) {
      if (buffer.bytes > largest->bytes) largest = &buffer;
    }
  }
  Json views = {"plain"};
  if (artifact.manifest().mtp) views.push_back("mtp");
  Json ranges = pieces_json(artifact);
  if (Json file = file_json(artifact); !file.is_null()) {
    ranges.insert(ranges.begin(), std::move(file));
  }
  uint64_t download = artifact.plan().bytes;
  if (const auto& file = artifact.manifest().generation_config) download += file->bytes;
  return {{"artifact", artifact.digest().hex()},
          {"views", std::move(views)},
          {"context", plan.capacity.context},
          {"inputBound", plan.capacity.input_bound},
          {"drafts", plan.capacity.drafts},
          {"downloadBytes", download},
          {"weightBytes", plan.weight_bytes()},
          {"scratchBytes", plan.scratch_bytes()},
          {"sequenceBytes", plan.sequence_bytes()},
          {"largestBuffer", {{"name", largest->name}, {"bytes", largest->bytes}}},
          {"ranges", std::move(ranges)}};
}

// Where the adapter does not allow the plan, its sizes are those without bounds.
Result<Json> plan(std::string_view manifest, std::string_view options_text,
                  std::string_view adapter_text) {
  TRY_ASSIGN(const EngineOptions options, engine_options(options_text));
  TRY_ASSIGN(const gpu::AdapterInfo adapter, read_adapter(adapter_text));
  TRY_ASSIGN(const artifact::Artifact artifact, open_artifact(manifest, options));
  Result<model::Plan> plan = engine::plan_model(artifact, options, adapter.limits);
  Json refusal;
  if (!plan) {
    if (plan.error().code != ErrorCode::limit_exceeded) {
      return tl::unexpected<Error>(plan.error());
    }
    refusal = {{"code", std::string(name(plan.error().code))}, {"message", plan.error().message}};
    gpu::Limits unbounded = adapter.limits;
    unbounded.max_buffer_bytes = unbounded.max_binding_bytes = uint64_t{1} << 40;
    plan = engine::plan_model(artifact, options, unbounded);
    if (!plan) return tl::unexpected<Error>(plan.error());
  }
  Json json = plan_json(artifact, *plan);
  json["refusal"] = std::move(refusal);
  return json;
}

Result<Json> begin(std::string_view manifest, std::string_view options_text) {
  if (loading || engine_) {
    return fail(ErrorCode::invalid_argument, "the engine is loaded already; unload it first");
  }
  TRY_ASSIGN(EngineOptions options, engine_options(options_text));
  TRY_ASSIGN(artifact::Artifact artifact, open_artifact(manifest, options));
  Json json = {{"artifact", artifact.digest().hex()},
               {"file", file_json(artifact)},
               {"pieces", pieces_json(artifact)}};
  loading.emplace(Load{std::move(options), std::move(artifact), {}, {}});
  return json;
}

// What becomes of a piece's bytes: writes of [offset in the piece, bytes, buffer, offset there],
// and [offset, bytes] of what `tandem_watch` sees before.
Result<Json> targets(const artifact::Piece& piece, const model::Target& target,
                     const artifact::OrderingWatch& ordering) {
  Json writes = Json::array();
  Json watched = Json::array();
  for (const artifact::Segment& segment : piece.segments) {
    TRY_ASSIGN(const auto places,
               target.weights().places(segment.plane, segment.plane_offset, segment.bytes));
    uint64_t from = segment.piece_offset;
    for (const gpu::View& place : places) {
      writes.push_back({from, place.bytes, place.buffer, place.offset});
      from += place.bytes;
    }
    if (ordering.watches(segment)) watched.push_back({segment.piece_offset, segment.bytes});
  }
  return Json{{"writes", std::move(writes)}, {"watched", std::move(watched)}};
}

// Makes the device's buffers; says where the pieces go.
Result<Json> open(std::string_view tokenizer, std::optional<std::string> generation_config,
                  std::string_view adapter_text) {
  if (!loading) return fail(ErrorCode::invalid_argument, "no load was begun");
  Load& load = *loading;
  TRY(load.artifact.add_metadata(std::string(tokenizer), std::move(generation_config)));
  TRY_ASSIGN(engine::Texts texts, engine::open_texts(load.artifact));
  TRY_ASSIGN(const gpu::Tiers disabled, engine::disabled_tiers(load.options));
  TRY_ASSIGN(gpu::AdapterInfo adapter, read_adapter(adapter_text));
  adapter.tiers.subgroups &= !disabled.subgroups;
  adapter.tiers.dp4a &= !disabled.dp4a;
  adapter.tiers.f16 &= !disabled.f16;
  adapter.timestamps &= profile;
  const engine::Instruments instruments{.timed = adapter.timestamps};
  TRY_ASSIGN(engine::OpenedModel opened,
             engine::open_target(load.artifact, load.options,
                                 gpu::Device::adopt(std::move(adapter)), instruments));
  load.ordering.emplace(load.artifact);
  Json json = Json::array();
  for (const artifact::Piece& piece : load.artifact.plan().pieces) {
    TRY_ASSIGN(Json piece_json, targets(piece, *opened.target, *load.ordering));
    json.push_back(std::move(piece_json));
  }
  load.opening.emplace(load.artifact, std::move(texts), std::move(opened));
  return json;
}

Result<engine::Opening*> opening() {
  if (loading && loading->opening) return &*loading->opening;
  return fail(ErrorCode::invalid_argument, "no load is under way");
}

Result<bool> prepare() {
  TRY_ASSIGN(engine::Opening* const opening, opening());
  return opening->prepare(false);
}

Result<Json> finish(double load_ms) {
  TRY_ASSIGN(engine::Opening* const opening, opening());
  TRY(loading->ordering->finish());
  TRY_ASSIGN(const bool prepared, opening->prepare(false));
  if (!prepared) return fail(ErrorCode::internal, "the engine is not prepared yet");
  engine_.emplace(std::move(*opening).engine(load_ms));
  loading.reset();
  return to_json(engine_->info());
}

Result<Engine*> engine() {
  if (engine_) return &*engine_;
  return fail(ErrorCode::invalid_argument, "the engine is not loaded");
}

Result<Session*> session(uint32_t number) {
  const auto found = sessions.find(number);
  if (found != sessions.end()) return &found->second;
  return fail(ErrorCode::invalid_argument, "the session is closed, or its engine unloaded");
}

Result<uint32_t> new_session() {
  TRY_ASSIGN(Engine* const engine, engine());
  TRY_ASSIGN(Session session, engine->begin_session());
  sessions.emplace(++last_session, std::move(session));
  return last_session;
}

Result<void> start(uint32_t number, std::span<const uint32_t> prompt, std::string_view options) {
  TRY_ASSIGN(Session* const session, session(number));
  TRY_ASSIGN(const GenerateOptions read, read_generate_options(options, engine_->info().sampling));
  return session->start(prompt, read);
}

Status step(uint32_t number) {
  const Result<Session*> found = session(number);
  if (!found) return say(found.error());
  Result<std::optional<std::string>> piece = (*found)->poll();
  if (!piece) return say(piece.error());
  return *piece ? say(std::move(**piece)) : say(std::string(), not_yet);
}

Result<void> check(std::string_view options) {
  TRY_ASSIGN(Engine* const engine, engine());
  TRY_ASSIGN(const GenerateOptions read, read_generate_options(options, engine->info().sampling));
  return engine->check(read);
}

Result<std::vector<uint32_t>> encode(std::string_view text) {
  TRY_ASSIGN(Engine* const engine, engine());
  return engine->encode(text);
}

Result<std::vector<uint32_t>> encode_chat(std::string_view text) {
  TRY_ASSIGN(Engine* const engine, engine());
  TRY_ASSIGN(const std::vector<Message> messages, read_messages(text));
  return engine->encode_chat(messages);
}

Result<std::vector<uint32_t>> next_prompt(uint32_t number, std::string_view text) {
  TRY_ASSIGN(Session* const session, session(number));
  TRY_ASSIGN(const std::vector<Message> messages, read_messages(text));
  return session->next_prompt(messages);
}

Result<Json> times(uint32_t number) {
  TRY_ASSIGN(Session* const session, session(number));
  const engine::Profile sums = engine::profile(engine::SessionSequence::of(*session).take_times());
  Json kernels = Json::array();
  for (const engine::KernelProfile& kernel : sums.kernels) {
    kernels.push_back({{"kernel", kernel.kernel},
                       {"calls", kernel.calls},
                       {"timeNs", kernel.time_ns},
                       {"bytes", kernel.bytes ? Json(*kernel.bytes) : Json()}});
  }
  return kernels;
}

// What `get` says of a session.
template <class Get>
Status of_session(uint32_t number, Get get) {
  const Result<Session*> found = session(number);
  return found ? say(Json(get(**found))) : say(found.error());
}

}  // namespace
}  // namespace tandem::web

using namespace tandem;
using namespace tandem::web;

extern "C" {

EMSCRIPTEN_KEEPALIVE const Reply* tandem_reply() { return &reply; }
EMSCRIPTEN_KEEPALIVE double* tandem_clock() { return clock_address(); }

EMSCRIPTEN_KEEPALIVE int tandem_describe() {
  return say(Json{{"version", TANDEM_VERSION},
                  {"kernelClosure", std::string(gpu::closure_digest())},
                  {"target", model::has_mtp ? "mtp" : "plain"},
                  {"profile", profile},
                  {"module", stamp}});
}

EMSCRIPTEN_KEEPALIVE int tandem_plan(const char* manifest, size_t manifest_bytes,
                                     const char* options, size_t options_bytes, const char* adapter,
                                     size_t adapter_bytes) {
  return say(plan({manifest, manifest_bytes}, {options, options_bytes}, {adapter, adapter_bytes}));
}

EMSCRIPTEN_KEEPALIVE int tandem_begin(const char* manifest, size_t manifest_bytes,
                                      const char* options, size_t options_bytes) {
  return say(begin({manifest, manifest_bytes}, {options, options_bytes}));
}

EMSCRIPTEN_KEEPALIVE int tandem_open(const char* tokenizer, size_t tokenizer_bytes,
                                     const char* generation_config, size_t generation_config_bytes,
                                     const char* adapter, size_t adapter_bytes) {
  std::optional<std::string> config;
  if (generation_config) config.emplace(generation_config, generation_config_bytes);
  return say(open({tokenizer, tokenizer_bytes}, std::move(config), {adapter, adapter_bytes}));
}

EMSCRIPTEN_KEEPALIVE int tandem_watch(const std::byte* ids, size_t bytes) {
  const Result<engine::Opening*> found = opening();
  return say(found ? loading->ordering->see({ids, bytes}) : tl::unexpected<Error>(found.error()));
}

EMSCRIPTEN_KEEPALIVE int tandem_prepare() { return say(prepare()); }
EMSCRIPTEN_KEEPALIVE int tandem_finish(double load_ms) { return say(finish(load_ms)); }

EMSCRIPTEN_KEEPALIVE void tandem_close() {
  sessions.clear();
  engine_.reset();
  loading.reset();
}

EMSCRIPTEN_KEEPALIVE int tandem_check(const char* options, size_t bytes) {
  return say(check({options, bytes}));
}
EMSCRIPTEN_KEEPALIVE int tandem_encode(const char* text, size_t bytes) {
  return say(encode({text, bytes}));
}
EMSCRIPTEN_KEEPALIVE int tandem_encode_chat(const char* messages, size_t bytes) {
  return say(encode_chat({messages, bytes}));
}

EMSCRIPTEN_KEEPALIVE int tandem_session() { return say(new_session()); }
EMSCRIPTEN_KEEPALIVE int tandem_session_prepare(uint32_t number) {
  const Result<Session*> found = session(number);
  return found ? say((*found)->prepare()) : say(found.error());
}
EMSCRIPTEN_KEEPALIVE void tandem_session_close(uint32_t number) { sessions.erase(number); }

EMSCRIPTEN_KEEPALIVE int tandem_start(uint32_t number, const uint32_t* ids, size_t count,
                                      const char* options, size_t bytes) {
  return say(start(number, {ids, count}, {options, bytes}));
}
EMSCRIPTEN_KEEPALIVE int tandem_step(uint32_t number) { return step(number); }
EMSCRIPTEN_KEEPALIVE int tandem_running(uint32_t number) {
  const auto found = sessions.find(number);
  return found != sessions.end() && found->second.running();
}
EMSCRIPTEN_KEEPALIVE int tandem_abort(uint32_t number) {
  const Result<Session*> found = session(number);
  return found ? say((*found)->abort()) : say(found.error());
}
EMSCRIPTEN_KEEPALIVE int tandem_stats(uint32_t number) {
  return of_session(number, [](Session& s) { return to_json(s.generation().stats); });
}
EMSCRIPTEN_KEEPALIVE int tandem_generation(uint32_t number) {
  return of_session(number, [](Session& s) { return to_json(s.generation()); });
}
EMSCRIPTEN_KEEPALIVE int tandem_ids(uint32_t number) {
  return of_session(number, [](Session& s) { return s.ids(); });
}
EMSCRIPTEN_KEEPALIVE int tandem_next_prompt(uint32_t number, const char* messages, size_t bytes) {
  return say(next_prompt(number, {messages, bytes}));
}
EMSCRIPTEN_KEEPALIVE int tandem_reset(uint32_t number) {
  const Result<Session*> found = session(number);
  if (found) (*found)->reset();
  return found ? say(std::string()) : say(found.error());
}
EMSCRIPTEN_KEEPALIVE int tandem_times(uint32_t number) { return say(times(number)); }

}  // extern "C"
