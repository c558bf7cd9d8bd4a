// release.json: what it binds, and that any other file, mix or field is refused.
#include "artifact/release.h"

#include <gtest/gtest.h>

#include <fstream>

#include "support/checkpoint.h"
#include "support/refusal.h"

namespace tandem::test {
namespace {

namespace fs = std::filesystem;
using artifact::Release;

const Digest artifact_digest = sha256("an artifact");

void write(const fs::path& path, const std::string& text) {
  std::ofstream(path, std::ios::binary) << text;
}

std::string wasm(const std::string& target, const std::string& build,
                 const std::string& version = "0.1.0") {
  return "wasm\ntandem module " + version + " " + target + " " + build + '\0' +
         std::string("code tandem kernel closure ") + sha256(target).hex() + '\0' + "data";
}

class ReleaseTest : public ::testing::Test {
 protected:
  void SetUp() override {
    for (const auto& [target, name] :
         {std::pair("plain", "webgpu_llama"), std::pair("mtp", "gemma4_mtp")}) {
      for (const auto& [build, suffix] :
           {std::pair("wall", ""), std::pair("profile", ".profile")}) {
        const std::string file = std::string(name) + suffix;
        write(modules() / (file + ".js"), "js of " + file);
        write(modules() / (file + ".wasm"), wasm(target, build));
      }
    }
  }
  const fs::path& modules() const { return folder_.path(); }
  Release made() const { return *artifact::make_release(artifact_digest, modules()); }
  Result<Release> make() const { return artifact::make_release(artifact_digest, modules()); }

 private:
  TemporaryFolder folder_;
};

TEST_F(ReleaseTest, BindsWhatItIsMadeOf) {
  const Release release = made();
  EXPECT_EQ(release.engine, "0.1.0");
  EXPECT_EQ(release.artifact, artifact_digest);
  EXPECT_EQ(release.plain.kernel_closure, sha256("plain"));
  EXPECT_EQ(release.mtp.profile.js.sha256, sha256("js of gemma4_mtp.profile"));
  const auto read = artifact::read_release(release_text(release));
  ASSERT_TRUE(accepted(read));
  write(modules() / "release.json", release_text(release));
  EXPECT_TRUE(accepted(verify_release(*read, artifact_digest, modules())));
  EXPECT_TRUE(refused(verify_release(*read, sha256("another"), modules()), ErrorCode::hash_mismatch,
                      {"artifact"}));
}

TEST_F(ReleaseTest, RefusesFilesThatAreMissingOrTooMany) {
  const Release release = made();
  write(modules() / "extra.js", "");
  EXPECT_TRUE(refused(make(), ErrorCode::malformed_artifact, {"extra.js"}));
  fs::remove(modules() / "extra.js");
  fs::remove(modules() / "gemma4_mtp.js");
  EXPECT_TRUE(refused(make(), ErrorCode::not_found, {"gemma4_mtp.js"}));
  EXPECT_TRUE(refused(verify_release(release, artifact_digest, modules()), ErrorCode::not_found));
}

TEST_F(ReleaseTest, RefusesAnyFileThatChanges) {
  const Release release = made();
  for (const auto& entry : fs::directory_iterator(modules())) {
    const std::string text = read_file(entry.path());
    write(entry.path(), text + "x");
    EXPECT_TRUE(refused(verify_release(release, artifact_digest, modules()),
                        ErrorCode::hash_mismatch, {entry.path().filename().string()}));
    write(entry.path(), text);
  }
  EXPECT_TRUE(accepted(verify_release(release, artifact_digest, modules())));
}

TEST_F(ReleaseTest, RefusesModulesUnderTheNameOfAnother) {
  const std::pair<const char*, std::string> wrong[] = {
      {"gemma4_mtp.wasm", wasm("mtp", "profile")},
      {"gemma4_mtp.profile.wasm", wasm("mtp", "wall")},
      {"webgpu_llama.wasm", wasm("mtp", "wall")},
      {"gemma4_mtp.profile.wasm", wasm("mtp", "profile", "0.2.0")},
      {"gemma4_mtp.wasm", "no stamp"},
      {"gemma4_mtp.wasm", wasm("mtp", "wall") + wasm("mtp", "wall")},
  };
  for (const auto& [file, text] : wrong) {
    SetUp();
    write(modules() / file, text);
    EXPECT_TRUE(refused(make(), ErrorCode::malformed_artifact, {file}));
  }
}

TEST_F(ReleaseTest, RefusesTextThatIsNotARelease) {
  const std::string text = release_text(made());
  const auto changed = [&](const std::string& from, const std::string& to) {
    std::string copy = text;
    const size_t at = copy.find(from);
    EXPECT_NE(at, copy.npos) << from;
    return artifact::read_release(copy.replace(at, from.size(), to));
  };
  EXPECT_TRUE(refused(artifact::read_release("{}"), ErrorCode::missing_key));
  EXPECT_TRUE(refused(artifact::read_release(text + " "), ErrorCode::malformed_artifact));
  EXPECT_TRUE(refused(changed("\"engine\"", "\"engines\""), ErrorCode::missing_key));
  EXPECT_TRUE(refused(changed("tandem.release", "tandem.other"), ErrorCode::bad_value));
  EXPECT_TRUE(
      refused(changed("\"schema_version\": 1", "\"schema_version\": 2"), ErrorCode::bad_value));
  EXPECT_TRUE(refused(changed("\"gemma4_mtp.js\"", "\"webgpu_llama.js\""), ErrorCode::bad_value));
  EXPECT_TRUE(refused(changed("\"profile\": {", "\"profiles\": {"), ErrorCode::missing_key));
}

}  // namespace
}  // namespace tandem::test
