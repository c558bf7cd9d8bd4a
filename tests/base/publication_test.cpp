// Publication: complete or absent, nothing replaced, nothing left behind.
#include "base/publication.h"

#include "base/sha256.h"
#include "folder.h"

namespace tandem {
namespace {

namespace fs = std::filesystem;

class PublicationTest : public test::FolderTest {
 protected:
  using Names = std::vector<std::string>;

  // Everything that may be in the way of an output.
  void put_in_the_way(std::string_view kind, std::string_view name) const {
    if (kind == "file") put(name, "old");
    if (kind == "empty folder") fs::create_directory(path(name));
    if (kind == "dangling link") fs::create_symlink("nowhere", path(name));
    if (kind == "link to a folder") fs::create_symlink(".", path(name));
  }
  static constexpr std::string_view obstacles[] = {"file", "empty folder", "dangling link",
                                                   "link to a folder"};

  static void write(Publication& publication, std::string_view name, std::string_view text) {
    auto file = publication.create(name);
    ASSERT_TRUE(file) << file.error().message;
    ASSERT_TRUE(file->write(text));
    ASSERT_EQ(file->bytes_written(), text.size());
    ASSERT_TRUE(file->close());
  }
};

TEST_F(PublicationTest, AppearsCompleteAtCommitAndNotBefore) {
  auto publication = Publication::begin(path("out/"));
  ASSERT_TRUE(publication) << publication.error().message;
  write(*publication, "b", "two");
  write(*publication, "a", "one");
  EXPECT_FALSE(fs::exists(path("out")));
  const auto committed = publication->commit();
  ASSERT_TRUE(committed) << committed.error().message;
  EXPECT_EQ(names(), Names{"out"});
  EXPECT_EQ(names("out"), (Names{"a", "b"}));
  EXPECT_EQ(content(path("out/a")), "one");
  EXPECT_EQ(content(path("out/b")), "two");
}

TEST_F(PublicationTest, OutlivesItsPublicationOnce) {
  {
    auto publication = Publication::begin(path("out"));
    ASSERT_TRUE(publication);
    write(*publication, "a", "one");
    ASSERT_TRUE(publication->commit());
    EXPECT_FALSE(publication->commit());
    EXPECT_FALSE(publication->create("late"));
  }
  EXPECT_EQ(content(path("out/a")), "one");
  EXPECT_EQ(names("out"), Names{"a"});
}

TEST_F(PublicationTest, WithoutACommitNothingIsLeft) {
  {
    auto publication = Publication::begin(path("out"));
    ASSERT_TRUE(publication);
    write(*publication, "a", "one");
    auto unfinished = publication->create("b");
    ASSERT_TRUE(unfinished);
    ASSERT_TRUE(unfinished->write("half"));
    EXPECT_EQ(names().size(), 1u);
  }
  EXPECT_EQ(names(), Names{});
}

TEST_F(PublicationTest, AFileThatIsNotClosedStopsTheCommit) {
  auto publication = Publication::begin(path("out"));
  ASSERT_TRUE(publication);
  { ASSERT_TRUE(publication->create("forgotten")); }
  const auto committed = publication->commit();
  ASSERT_FALSE(committed);
  EXPECT_NE(committed.error().message.find("forgotten"), std::string::npos);
  EXPECT_FALSE(fs::exists(path("out")));
}

TEST_F(PublicationTest, WhatExistsIsRefusedBeforeAnyWork) {
  for (const std::string_view obstacle : obstacles) {
    put_in_the_way(obstacle, "out");
    const auto publication = Publication::begin(path("out"));
    ASSERT_FALSE(publication) << obstacle;
    EXPECT_EQ(publication.error().code, ErrorCode::already_exists) << obstacle;
    EXPECT_EQ(FilePublication::begin(path("out")).error().code, ErrorCode::already_exists);
    EXPECT_EQ(names(), Names{"out"}) << obstacle;
    fs::remove(path("out"));
  }
}

TEST_F(PublicationTest, WhatAppearsMeanwhileIsNotReplaced) {
  for (const std::string_view obstacle : obstacles) {
    {
      auto publication = Publication::begin(path("out"));
      auto file = FilePublication::begin(path("out"));
      ASSERT_TRUE(publication && file);
      write(*publication, "a", "new");
      ASSERT_TRUE(file->file().write("new"));
      put_in_the_way(obstacle, "out");
      const auto committed = publication->commit();
      ASSERT_FALSE(committed) << obstacle;
      EXPECT_EQ(committed.error().code, ErrorCode::already_exists) << obstacle;
      EXPECT_EQ(file->commit().error().code, ErrorCode::already_exists) << obstacle;
    }
    EXPECT_EQ(names(), Names{"out"}) << obstacle;
    if (obstacle == "file") {
      EXPECT_EQ(content(path("out")), "old");
    }
    fs::remove(path("out"));
  }
}

TEST_F(PublicationTest, TheDestinationNeedsANameAndAParent) {
  EXPECT_EQ(Publication::begin(path("no/such/out")).error().code, ErrorCode::not_found);
  put("file", "x");
  EXPECT_EQ(Publication::begin(path("file/out")).error().code, ErrorCode::not_found);
  for (const std::string_view bad : {"", ".", "/", ".."}) {
    const auto publication = Publication::begin(bad);
    ASSERT_FALSE(publication) << bad;
    EXPECT_EQ(publication.error().code, ErrorCode::invalid_argument) << bad;
  }
}

TEST_F(PublicationTest, FilesStayInTheFolderAndAreMadeOnce) {
  auto publication = Publication::begin(path("out"));
  ASSERT_TRUE(publication);
  for (const std::string_view name : {"../escaped", "/tmp/escaped", "a/b", "..", ""}) {
    EXPECT_EQ(publication->create(name).error().code, ErrorCode::unsafe_path) << name;
  }
  write(*publication, "a", "one");
  EXPECT_FALSE(publication->create("a"));
}

// What a file system without a rename that refuses to replace gets.
TEST_F(PublicationTest, RenameAfterALookReplacesNothingEither) {
  for (const auto kind : {detail::Kind::folder, detail::Kind::file}) {
    for (const std::string_view obstacle : obstacles) {
      fs::create_directory(path("staged"));
      put("staged/a", "new");
      put_in_the_way(obstacle, "out");
      const fs::path from = path(kind == detail::Kind::folder ? "staged" : "staged/a");
      const auto refused = detail::rename_after_a_look(from, path("out"), kind);
      ASSERT_FALSE(refused) << obstacle;
      EXPECT_EQ(refused.error().code, ErrorCode::already_exists) << obstacle;
      EXPECT_EQ(content(path("staged/a")), "new") << obstacle;
      fs::remove(path("out"));

      const auto renamed = detail::rename_after_a_look(from, path("out"), kind);
      ASSERT_TRUE(renamed) << renamed.error().message;
      EXPECT_EQ(content(kind == detail::Kind::folder ? path("out/a") : path("out")), "new");
      fs::remove_all(path("out"));
      fs::remove_all(path("staged"));
    }
  }
}

TEST_F(PublicationTest, StepsComeInTheirOrder) {
  std::vector<std::string_view> steps;
  auto publication =
      Publication::begin(path("out"), [&](PublicationStep step) { steps.push_back(name(step)); });
  ASSERT_TRUE(publication);
  write(*publication, "a", "one");
  write(*publication, "b", "two");
  const auto check = [&](const fs::path& staged) -> Result<void> {
    EXPECT_EQ(content(staged / "a"), "one");
    EXPECT_FALSE(fs::exists(path("out")));
    EXPECT_EQ(steps.back(), "folder synced");
    return {};
  };
  ASSERT_TRUE(publication->commit(check));
  const std::vector<std::string_view> expected = {
      "folder made", "file made",     "file written", "file synced", "file made",    "file written",
      "file synced", "folder synced", "checked",      "renamed",     "parent synced"};
  EXPECT_EQ(steps, expected);
}

TEST_F(PublicationTest, WhatFailsItsCheckIsNotPublished) {
  {
    auto publication = Publication::begin(path("out"));
    ASSERT_TRUE(publication);
    write(*publication, "a", "one");
    const auto committed = publication->commit([](const fs::path&) -> Result<void> {
      return tl::unexpected(Error{ErrorCode::hash_mismatch, "a"});
    });
    ASSERT_FALSE(committed);
    EXPECT_EQ(committed.error().code, ErrorCode::hash_mismatch);
    EXPECT_FALSE(fs::exists(path("out")));
  }
  EXPECT_EQ(names(), Names{});
}

TEST_F(PublicationTest, NamesThatDifferOnlyInCaseAreRefused) {
  auto publication = Publication::begin(path("out"));
  ASSERT_TRUE(publication);
  write(*publication, "Shard-a", "one");
  EXPECT_EQ(publication->create("shard-A").error().code, ErrorCode::already_exists);
  write(*publication, "shard-b", "two");
  ASSERT_TRUE(publication->commit());
  for (const std::string_view taken : {"Out", "OUT"}) {
    const auto refused = Publication::begin(path(taken));
    ASSERT_FALSE(refused) << taken;
    EXPECT_EQ(refused.error().code, ErrorCode::already_exists) << taken;
    EXPECT_NE(refused.error().message.find("\"out\""), std::string::npos) << taken;
    EXPECT_FALSE(FilePublication::begin(path(taken))) << taken;
  }
  EXPECT_TRUE(Publication::begin(path("outer")));
  EXPECT_EQ(names(), Names{"out"});
}

TEST_F(PublicationTest, OfNamesThatDifferOnlyInCaseTheFirstWins) {
  {
    auto late = Publication::begin(path("out")), first = Publication::begin(path("Out"));
    auto file = FilePublication::begin(path("OUT"));
    ASSERT_TRUE(first && late && file);
    write(*first, "a", "first");
    write(*late, "a", "late");
    ASSERT_TRUE(file->file().write("late"));
    ASSERT_TRUE(first->commit());
    for (const Result<void>& refused : {late->commit(), file->commit()}) {
      ASSERT_FALSE(refused);
      EXPECT_EQ(refused.error().code, ErrorCode::already_exists);
      EXPECT_NE(refused.error().message.find("\"Out\""), std::string::npos);
    }
  }
  EXPECT_EQ(names(), Names{"Out"});
}

TEST_F(PublicationTest, ALinkAsOutputIsRefusedWithASlash) {
  fs::create_directory(path("real"));
  fs::create_symlink("real", path("out"));
  EXPECT_EQ(Publication::begin(path("out/")).error().code, ErrorCode::already_exists);
  EXPECT_EQ(names("real"), Names{});
}

TEST_F(PublicationTest, WhatFollowsALinkIsWhereTheSystemFindsIt) {
  fs::create_directories(path("a/b"));
  fs::create_directory(path("c"));
  fs::create_symlink("../a/b", path("c/link"));
  const auto publication = Publication::begin(path("c/link/../out"));
  ASSERT_TRUE(publication) << publication.error().message;
  EXPECT_EQ(publication->destination(), fs::canonical(path("a")) / "out");
  EXPECT_EQ(Publication::begin(path("none/../out")).error().code, ErrorCode::not_found);
}

TEST_F(PublicationTest, NothingIsMadeInsideAnArtifact) {
  fs::create_directories(path("artifact/folder"));
  put("artifact/manifest.json", "");
  { ASSERT_TRUE(Publication::begin(path("artifact/out"))) << "a folder with a manifest only"; }
  put("artifact/receipt.json", "");
  fs::create_symlink("artifact/folder", path("link"));
  for (const std::string_view inside : {"artifact/out", "artifact/folder/out", "link/out"}) {
    const auto publication = Publication::begin(path(inside));
    ASSERT_FALSE(publication) << inside;
    EXPECT_EQ(publication.error().code, ErrorCode::invalid_argument);
    EXPECT_NE(publication.error().message.find("which is an artifact"), std::string::npos);
    EXPECT_EQ(FilePublication::begin(path(inside)).error().code, ErrorCode::invalid_argument);
  }
  EXPECT_EQ(names("artifact"), (Names{"folder", "manifest.json", "receipt.json"}));
  EXPECT_TRUE(Publication::begin(path("beside")));
}

// A folder with this name and a file in it, as a killed publication leaves them.
TEST_F(PublicationTest, WhatAKilledPublicationLeftIsRemoved) {
  const auto leave = [&](std::string_view name) {
    fs::create_directory(path(name));
    put(std::string(name) + "/shard", "half");
  };
  // As publications name them; all other folders are somebody's own.
  const auto sealed = [](const std::string& name) {
    return name + "-" + sha256(name).hex().substr(0, 16);
  };
  const std::string first = sealed(".out.partial-12-ab0-3"), second = sealed(".out.partial-9-a-4");
  leave(first);
  leave(second);
  const std::string with_folder = sealed(".out.partial-77-ab0-1");  // no publication makes one
  const Names others = {sealed(".other.partial-12-ab0-3"), ".out.partial-", ".out.partial-my notes",
                        ".out.partial-12-ab0-3", with_folder};
  for (const std::string& other : others) leave(other);
  fs::create_directory(path(with_folder + "/folder"));
  fs::create_directory_symlink(others[0], path(sealed(".out.partial-5-5-5")));
  put(sealed(".out.partial-6-6-6"), "a file");
  {
    auto publication = Publication::begin(path("out"));
    ASSERT_TRUE(publication);
    EXPECT_FALSE(fs::exists(path(first)));
    EXPECT_FALSE(fs::exists(path(second)));
    // That of a publication that lives is locked.
    auto other = Publication::begin(path("out"));
    ASSERT_TRUE(other);
    write(*publication, "a", "one");
    ASSERT_TRUE(publication->commit());
  }
  for (const std::string& other : others) EXPECT_EQ(content(path(other + "/shard")), "half");
  EXPECT_EQ(names().size(), others.size() + 3);
}

TEST_F(PublicationTest, AnotherFolderInPlaceOfTheStagedOneIsNotPublished) {
  const auto exchange = [&](PublicationStep step) {
    if (step != PublicationStep::checked) return;
    const std::string staged = names().at(0);
    fs::rename(path(staged), path("moved"));
    fs::create_directory(path(staged));
  };
  auto publication = Publication::begin(path("out"), exchange);
  ASSERT_TRUE(publication);
  write(*publication, "a", "one");
  EXPECT_EQ(publication->commit().error().code, ErrorCode::unsafe_path);
  EXPECT_FALSE(fs::exists(path("out")));
}

TEST_F(PublicationTest, SingleFile) {
  {
    auto file = FilePublication::begin(path("out.bin"));
    ASSERT_TRUE(file) << file.error().message;
    ASSERT_TRUE(file->file().write("bytes"));
    EXPECT_FALSE(fs::exists(path("out.bin")));
    const auto committed = file->commit();
    ASSERT_TRUE(committed) << committed.error().message;
  }
  EXPECT_EQ(content(path("out.bin")), "bytes");
  EXPECT_EQ(names(), Names{"out.bin"});

  { ASSERT_TRUE(FilePublication::begin(path("dropped.bin"))); }
  EXPECT_EQ(FilePublication::begin(path("new/")).error().code, ErrorCode::invalid_argument);
  EXPECT_EQ(names(), Names{"out.bin"});
}

}  // namespace
}  // namespace tandem
