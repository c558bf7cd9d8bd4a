// Work in a process of its own, which may be killed, limited or have file systems of its own.
#pragma once

#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <fstream>

namespace tandem::test {

// How a child ended.
struct Ending {
  int status = -1;    // that it exited with
  int signal = 0;     // that killed it
  long peak_kib = 0;  // of its resident memory
};

class Child {
 public:
  // Runs work(), whose result is the exit status.
  template <class Work>
  explicit Child(const Work& work) : id_(fork()) {
    if (id_ == 0) _exit(work());
  }
  void kill(int signal = SIGKILL) const { ::kill(id_, signal); }
  bool has_ended() const {
    siginfo_t info = {};
    return waitid(P_PID, static_cast<id_t>(id_), &info, WEXITED | WNOHANG | WNOWAIT) != 0 ||
           info.si_pid == id_;
  }
  Ending wait() const {
    int status = 0;
    rusage usage = {};
    if (wait4(id_, &status, 0, &usage) != id_) return {};
    return {WIFEXITED(status) ? WEXITSTATUS(status) : -1,
            WIFSIGNALED(status) ? WTERMSIG(status) : 0, usage.ru_maxrss};
  }

 private:
  pid_t id_;
};

// Gives a child mounts of its own, for which others than root need users of their own; false where
// the system does not let it have them.
inline bool own_mounts() {
  const uid_t user = geteuid();
  const gid_t group = getegid();
  if (unshare(CLONE_NEWNS) != 0) {
    if (unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0) return false;
    std::ofstream("/proc/self/setgroups") << "deny";
    std::ofstream("/proc/self/uid_map") << user << " " << user << " 1";
    std::ofstream("/proc/self/gid_map") << group << " " << group << " 1";
  }
  return mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0;
}

}  // namespace tandem::test
