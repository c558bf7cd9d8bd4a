// Provenance: what matches a pin and what does not, and that no edit of an artifact promotes it.
#include "artifact/provenance.h"

#include <gtest/gtest.h>

#include <functional>

#include "base/json.h"
#include "changes.h"
#include "fixture.h"

namespace tandem::test {
namespace {

namespace fs = std::filesystem;
using artifact::Artifact;
using artifact::Pin;
using artifact::PinnedFile;
using artifact::Pins;
using artifact::Provenance;
using artifact::Receipt;
using artifact::State;

// The pin of what a part was made from.
Pin pin_of(const std::string& name, const artifact::Origin& origin) {
  Pin pin{name, "target", origin.published, {}};
  for (const auto& source : origin.sources)
    pin.files.push_back({source.file, source.bytes, source.sha256});
  return pin;
}

Json to_json(const Pin& pin) {
  Json files = Json::array();
  for (const PinnedFile& file : pin.files) {
    files.push_back({{"file", file.file},
                     {"bytes", file.bytes},
                     {"sha256", file.sha256 ? Json(file.sha256->hex()) : Json()}});
  }
  return {{"name", pin.name},
          {"role", pin.role},
          {"published", artifact::to_json(pin.published)},
          {"files", files}};
}

Json sources_json(const std::vector<Pin>& pins) {
  Json list = Json::array();
  for (const Pin& pin : pins) list.push_back(to_json(pin));
  return {{"schema", "tandem.sources"}, {"schema_version", 2}, {"pins", list}};
}

Provenance judge(const Receipt& receipt, const std::vector<Pin>& pins) {
  const auto read = artifact::read_pins(canonical_json(sources_json(pins)), "pins.json");
  EXPECT_TRUE(accepted(read));
  return artifact::provenance(receipt, {&*read, 1});
}

bool mentions(const Provenance& provenance, const std::vector<std::string>& words) {
  for (const std::string& reason : provenance.reasons) {
    if (std::all_of(words.begin(), words.end(),
                    [&](const auto& word) { return reason.find(word) != reason.npos; }))
      return true;
  }
  return false;
}

class ProvenanceTest : public ArtifactTest {
 protected:
  Receipt receipt() {
    auto receipt = artifact::read_receipt(read_file(exported(false) / "receipt.json"));
    EXPECT_TRUE(accepted(receipt));
    return receipt.value_or(Receipt{});
  }
};

TEST_F(ProvenanceTest, EveryFileMustMatchInFull) {
  const Receipt receipt = this->receipt();
  const Pin pin = pin_of("tiny", *receipt.target);
  const Provenance verified = judge(receipt, {pin});
  EXPECT_EQ(verified.state, State::verified);
  ASSERT_EQ(verified.matches.size(), 1u);
  EXPECT_EQ(verified.matches[0].part, "target");
  EXPECT_EQ(verified.matches[0].pin, "tiny");
  EXPECT_EQ(verified.matches[0].pins_file, "pins.json");
  EXPECT_EQ(verified.matches[0].pins_sha256, sha256(canonical_json(sources_json({pin}))));
  EXPECT_TRUE(accepted(artifact::require_verified(verified, "tiny")));

  for (size_t i = 0; i < pin.files.size(); ++i) {
    const PinnedFile& file = pin.files[i];
    const Digest other = sha256("another");
    struct Case {
      std::function<void(Pin&)> change;
      std::vector<std::string> words;
    };
    const std::string found = file.sha256->hex();
    for (const Case& c : std::vector<Case>{
             {[&](Pin& p) { ++p.files[i].bytes; },
              {std::to_string(file.bytes), std::to_string(file.bytes + 1)}},
             {[&](Pin& p) { p.files[i].sha256 = other; }, {other.hex(), found}},
             {[&](Pin& p) { p.files[i].sha256.reset(); }, {"no sha256 is known", found}},
             {[&](Pin& p) { p.files.erase(p.files.begin() + i); }, {"no such file", found}}}) {
      Pin changed = pin;
      c.change(changed);
      const Provenance pending = judge(receipt, {changed});
      EXPECT_EQ(pending.state, State::pending);
      EXPECT_EQ(pending.reasons.size(), 1u);
      std::vector<std::string> words = c.words;
      words.insert(words.end(), {"target: " + file.file, "tiny"});
      EXPECT_TRUE(mentions(pending, words)) << pending.reasons.front();
      EXPECT_TRUE(refused(artifact::require_verified(pending, "models/tiny"), ErrorCode::unverified,
                          {"models/tiny", file.file, "tiny", c.words.back()}));
    }
    // A receipt that is silent about a file.
    Receipt partial = receipt;
    partial.target->sources.erase(partial.target->sources.begin() + i);
    const Provenance pending = judge(partial, {pin});
    EXPECT_EQ(pending.state, State::pending);
    EXPECT_TRUE(mentions(pending, {file.file, std::to_string(file.bytes), "found none"}));
  }
}

TEST_F(ProvenanceTest, BothPartsMustMatch) {
  Receipt receipt = this->receipt();
  receipt.assistant = receipt.target;
  receipt.assistant->sources[0].sha256 = sha256("assistant");
  const Pin target = pin_of("tiny", *receipt.target);
  Pin other = pin_of("a", *receipt.assistant);
  other.role = "assistant";
  const Provenance verified = judge(receipt, {other, target});
  EXPECT_EQ(verified.state, State::verified);
  EXPECT_EQ(verified.matches.size(), 2u);
  EXPECT_EQ(judge(receipt, {target}).state, State::pending);
  EXPECT_TRUE(mentions(judge(receipt, {target}), {"assistant: "}));
  EXPECT_EQ(judge(receipt, {other}).state, State::pending);
  EXPECT_EQ(judge({}, {target}).state, State::pending);
  EXPECT_EQ(judge(receipt, {}).state, State::pending);
  // A pin vouches for its role alone.
  Pin wrong = other;
  wrong.role = "target";
  EXPECT_EQ(judge(receipt, {wrong, target}).state, State::pending);
  wrong = target;
  wrong.role = "assistant";
  EXPECT_EQ(judge(receipt, {other, wrong}).state, State::pending);
  for (const auto part : {&Receipt::target, &Receipt::assistant}) {
    Receipt random = receipt;
    (random.*part)->sources.clear();
    (random.*part)->synthetic_seed = 1;
    EXPECT_EQ(judge(random, {target, other}).state, State::synthetic);
  }
  receipt.target->sources.clear();
  receipt.target->synthetic_seed = 1;
  EXPECT_TRUE(refused(artifact::require_verified(judge(receipt, {other}), "x"),
                      ErrorCode::unverified, {"random weights"}));
}

TEST_F(ProvenanceTest, WhereItWasPublishedMustBeWhereThePinSays) {
  Receipt receipt = this->receipt();
  Pin pin = pin_of("tiny", *receipt.target);
  pin.published = artifact::Published{"us/tiny", "0123"};
  EXPECT_EQ(judge(receipt, {pin}).state, State::verified);
  receipt.target->published = pin.published;
  EXPECT_EQ(judge(receipt, {pin}).state, State::verified);
  receipt.target->published->revision = "4567";
  EXPECT_TRUE(mentions(judge(receipt, {pin}), {"published", "us/tiny at 0123", "us/tiny at 4567"}));
  pin.published.reset();
  EXPECT_TRUE(mentions(judge(receipt, {pin}), {"published", "no repository", "us/tiny at 4567"}));
}

TEST_F(ProvenanceTest, TheReasonsAreThoseOfTheNearestPin) {
  const Receipt receipt = this->receipt();
  Pin far = pin_of("far", *receipt.target), near = far;
  near.name = "near";
  for (PinnedFile& file : far.files) file.sha256 = sha256("far " + file.file);
  near.files[0].sha256 = sha256("another");
  for (const auto& pins : {std::vector{far, near}, std::vector{near, far}}) {
    const Provenance pending = judge(receipt, pins);
    EXPECT_EQ(pending.reasons.size(), 1u);
    EXPECT_TRUE(mentions(pending, {"near", near.files[0].file}));
  }
}

TEST_F(ProvenanceTest, APinThatIsNotNearIsNotNamed) {
  Receipt receipt = this->receipt();
  Pin far = pin_of("far", *receipt.target);
  far.published = artifact::Published{"us/tiny", "0123"};
  for (PinnedFile& file : far.files) {
    ++file.bytes;
    file.sha256 = sha256(file.file);
  }
  const Provenance pending = judge(receipt, {far});
  EXPECT_EQ(pending.reasons.size(), 1u);
  EXPECT_TRUE(mentions(pending, {"target: expected the files of a pin", "config.json", "none"}));
  EXPECT_FALSE(mentions(pending, {"far"}));
  receipt.target->published = artifact::Published{"us/tiny", "4567"};
  EXPECT_TRUE(mentions(judge(receipt, {far}), {"far", "0123", "4567"}));
}

TEST_F(ProvenanceTest, TheBuiltInPinsKnowTheAtlasAndOnlySizesOfE2b) {
  const auto known = artifact::known_pins();
  ASSERT_TRUE(accepted(known));
  ASSERT_EQ(known->size(), 1u);
  EXPECT_EQ(known->front().sha256,
            sha256(read_file(std::string(TANDEM_SOURCE_DIR) + "/models/sources.json")));
  const auto atlas = Artifact::open(std::string(TANDEM_SOURCE_DIR) + "/models/atlas");
  ASSERT_TRUE(accepted(atlas));
  const Provenance verified = artifact::provenance(atlas->receipt(), *known);
  EXPECT_EQ(verified.state, State::verified);
  EXPECT_EQ(verified.matches.size(), 2u);

  for (const Pin& pin : known->front().pins) {
    if (!pin.published) continue;
    Receipt receipt;
    artifact::Origin origin;
    origin.published = pin.published;
    for (const PinnedFile& file : pin.files)
      origin.sources.push_back({file.file, file.bytes, sha256("unknown")});
    (pin.role == "target" ? receipt.target : receipt.assistant) = origin;
    const Provenance pending = artifact::provenance(receipt, *known);
    EXPECT_EQ(pending.state, State::pending);
    EXPECT_EQ(pending.reasons.size(), pin.files.size());
    if (pin.files[0].sha256) {
      EXPECT_TRUE(mentions(pending, {pin.files[0].file, pin.name, pin.files[0].sha256->hex()}));
    } else {
      EXPECT_TRUE(mentions(pending, {"model.safetensors", pin.name, "no sha256 is known"}));
    }
  }
}

TEST_F(ProvenanceTest, UsersBringPinsOfTheirOwn) {
  const Receipt receipt = this->receipt();
  const fs::path file = folder_.path() / "mine.json";
  write_file(file, canonical_json(sources_json({pin_of("mine", *receipt.target)})));
  const auto known = artifact::known_pins(file);
  ASSERT_TRUE(accepted(known));
  const Provenance verified = artifact::provenance(receipt, *known);
  EXPECT_EQ(verified.state, State::verified);
  EXPECT_EQ(verified.matches.at(0).pins_file, file.string());
  EXPECT_EQ(verified.matches.at(0).pins_sha256, sha256(read_file(file)));
  EXPECT_TRUE(refused(artifact::known_pins(folder_.path() / "none"), ErrorCode::not_found));
}

TEST_F(ProvenanceTest, PinsAreReadStrictly) {
  const Json pristine = sources_json({pin_of("tiny", *receipt().target)});
  struct Case {
    const char* place;
    Json value;  // null: the key is removed
    ErrorCode code;
  };
  for (const Case& c :
       std::vector<Case>{{"/schema", "tandem.receipt", ErrorCode::bad_value},
                         {"/schema_version", 1, ErrorCode::bad_value},
                         {"/schema_version", 2.0, ErrorCode::bad_value},
                         {"/schema_version", true, ErrorCode::bad_value},
                         {"/schema_version", "2", ErrorCode::bad_value},
                         {"/schema_version", nullptr, ErrorCode::missing_key},
                         {"/more", 1, ErrorCode::unknown_key},
                         {"/pins", Json::object(), ErrorCode::wrong_type},
                         {"/pins/0/name", 1, ErrorCode::wrong_type},
                         {"/pins/0/name", nullptr, ErrorCode::missing_key},
                         {"/pins/0/more", 1, ErrorCode::unknown_key},
                         {"/pins/0/role", "draft", ErrorCode::bad_value},
                         {"/pins/0/role", nullptr, ErrorCode::missing_key},
                         {"/pins/0/published", nullptr, ErrorCode::missing_key},
                         {"/pins/0/published", "us/tiny", ErrorCode::wrong_type},
                         {"/pins/0/published", Json{{"repository", "us"}}, ErrorCode::missing_key},
                         {"/pins/0/files", Json::array(), ErrorCode::bad_value},
                         {"/pins/0/files/0/file", "../x", ErrorCode::unsafe_path},
                         {"/pins/0/files/0/file", "zzz", ErrorCode::bad_value},
                         {"/pins/0/files/0/file", "config.json", ErrorCode::bad_value},
                         {"/pins/0/files/0/bytes", true, ErrorCode::wrong_type},
                         {"/pins/0/files/0/bytes", "1", ErrorCode::wrong_type},
                         {"/pins/0/files/0/bytes", nullptr, ErrorCode::missing_key},
                         {"/pins/0/files/0/sha256", "0123", ErrorCode::bad_value},
                         {"/pins/0/files/0/sha256", nullptr, ErrorCode::missing_key},
                         {"/pins/0/files/0/more", 1, ErrorCode::unknown_key}}) {
    Json changed = pristine;
    const Json::json_pointer place(c.place);
    changed[place] = c.value;
    if (c.value.is_null()) changed[place.parent_pointer()].erase(place.back());
    EXPECT_TRUE(
        refused(artifact::read_pins(canonical_json(changed), "p.json"), c.code, {"p.json"}) ||
        refused(artifact::read_pins(canonical_json(changed), "p.json"), c.code, {"../x"}))
        << c.place << " " << c.value;
  }
  Json twice = pristine;
  twice["pins"].push_back(twice["pins"][0]);
  EXPECT_TRUE(refused(artifact::read_pins(canonical_json(twice), "p.json"), ErrorCode::bad_value,
                      {"tiny again"}));
  EXPECT_TRUE(refused(artifact::read_pins(pristine.dump(), "p.json"), ErrorCode::malformed_json,
                      {"p.json"}));
}

TEST_F(ProvenanceTest, PinsThatContradictOneAnotherAreRefused) {
  Pin first = pin_of("first", *receipt().target), second = first;
  second.name = "second";
  first.published = second.published = artifact::Published{"us/tiny", "0123"};
  const auto read = [&](const Pin& a, const Pin& b) {
    return artifact::read_pins(canonical_json(sources_json({a, b})), "p.json");
  };
  EXPECT_TRUE(accepted(read(first, second)));
  Pin unknown = second;
  for (PinnedFile& file : unknown.files) file.sha256.reset();
  EXPECT_TRUE(accepted(read(first, unknown)));

  const std::string hash = first.files[0].sha256->hex(), file = first.files[0].file;
  Pin other = second;
  other.files[0].sha256 = sha256("another");
  EXPECT_TRUE(refused(read(first, other), ErrorCode::bad_value,
                      {"p.json", "first", "second", file, hash, sha256("another").hex()}));
  unknown.files[0].bytes += 1;
  EXPECT_TRUE(refused(read(first, unknown), ErrorCode::bad_value, {"first", "second", file}));
  // Another revision may have other files, but one sha256 is of one size.
  other.published->revision = "4567";
  EXPECT_TRUE(accepted(read(first, other)));
  other = second;
  other.published.reset();
  other.files[0].bytes += 1;
  EXPECT_TRUE(refused(read(first, other), ErrorCode::bad_value, {"first", "second", file, hash}));

  // A user's pins must agree with those that are built in.
  const auto known = artifact::known_pins();
  ASSERT_TRUE(accepted(known));
  for (const Pin& pin : known->front().pins) {
    if (!pin.published) continue;
    Pin mine = pin;
    const fs::path list = folder_.path() / "mine.json";
    write_file(list, canonical_json(sources_json({mine})));
    EXPECT_TRUE(refused(artifact::known_pins(list), ErrorCode::bad_value, {pin.name, "again"}));
    mine.name = "mine";
    write_file(list, canonical_json(sources_json({mine})));
    EXPECT_TRUE(accepted(artifact::known_pins(list)));
    ++mine.files[0].bytes;
    write_file(list, canonical_json(sources_json({mine})));
    EXPECT_TRUE(refused(artifact::known_pins(list), ErrorCode::bad_value, {pin.name, "mine"}));
  }
}

// An artifact of which one file is not the pin's, with a receipt whose digest is made anew after
// each edit: what is still accepted is still pending.
class PromotionTest : public ProvenanceTest {
 protected:
  void SetUp() override {
    path_ = copy();
    receipt_ = Json::parse(read_file(path_ / "receipt.json"));
    pin_ = pin_of("tiny", *receipt().target);
    pin_.files.back().sha256 = sha256("what was published");
    pins_.push_back(expect_pins());
    EXPECT_EQ(state(), State::pending);
  }

  Pins expect_pins() const {
    auto pins = artifact::read_pins(canonical_json(sources_json({pin_})), "pins.json");
    EXPECT_TRUE(accepted(pins));
    return pins.value_or(Pins{});
  }

  // None: refused.
  std::optional<State> state() const {
    const auto opened = Artifact::open(path_);
    if (!opened) return std::nullopt;
    return artifact::provenance(opened->receipt(), pins_).state;
  }

  void write_forged(Json receipt) const {
    if (receipt.is_object()) {
      receipt.erase("digest");
      receipt["digest"] = sha256(canonical_json(receipt)).hex();
    }
    write_file(path_ / "receipt.json", canonical_json(receipt));
  }

  fs::path path_;
  Json receipt_;
  Pin pin_;
  std::vector<Pins> pins_;
};

TEST_F(PromotionTest, NoFieldOfTheReceipt) {
  size_t edits = 0;
  for_each_change(receipt_, [&](const Json& changed, const std::string& what) {
    if (what.starts_with("/digest")) return;  // it is made anew
    write_forged(changed);
    EXPECT_EQ(state(), std::nullopt) << what;
    ++edits;
  });
  EXPECT_GT(edits, 100u);
  write_forged(receipt_);
  EXPECT_EQ(state(), State::pending);
}

TEST_F(PromotionTest, NoFieldOfTheManifest) {
  const Json manifest = Json::parse(read_file(path_ / "manifest.json"));
  for_each_change(manifest, [&](const Json& changed, const std::string& what) {
    const std::string text = canonical_json(changed);
    Json receipt = receipt_;
    for (Json& file : receipt["files"]) {
      if (file["file"] != "manifest.json") continue;
      file = {{"file", "manifest.json"}, {"bytes", text.size()}, {"sha256", sha256(text).hex()}};
    }
    write_file(path_ / "manifest.json", text);
    write_forged(receipt);
    EXPECT_NE(state(), State::verified) << what;
  });
}

TEST_F(PromotionTest, NoSourcesButThoseThatTheManifestBinds) {
  Json forged = receipt_;
  forged["target"]["sources"].back()["sha256"] = pin_.files.back().sha256->hex();
  write_forged(forged);
  EXPECT_TRUE(refused(Artifact::open(path_), ErrorCode::malformed_artifact, {"target"}));
  forged = receipt_;
  forged["target"]["sources"].erase(forged["target"]["sources"].size() - 1);
  write_forged(forged);
  EXPECT_TRUE(refused(Artifact::open(path_), ErrorCode::malformed_artifact, {"target"}));
  forged["target"] = nullptr;
  write_forged(forged);
  EXPECT_TRUE(refused(Artifact::open(path_), ErrorCode::malformed_artifact, {"target"}));
}

}  // namespace
}  // namespace tandem::test
