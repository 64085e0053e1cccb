// SPDX-License-Identifier: Apache-2.0
#include "output/transport/reliable.h"

#include <string.h>

#include <utility>

#include "output/transport/patience.h"

namespace weir::output {

Status ReliableWorld::resend(int to, Peer& peer) {
  for (; !peer.unsent.empty(); peer.unsent.pop_front()) {
    const Status sent = world_->send(to, peer.unsent.front());
    if (sent.ok()) {
      peer.failing_since_s = 0;
      continue;
    }
    blocked_.insert(to);
    if (peer.failing_since_s == 0) peer.failing_since_s = now_s();
    return now_s() - peer.failing_since_s > time_limit() ? sent : Status();
  }
  blocked_.erase(to);
  return {};
}

void ReliableWorld::resend_all() {
  for (const int to : std::vector<int>(blocked_.begin(), blocked_.end()))
    (void)resend(to, peers_[to]);
}

Status ReliableWorld::send(int to, std::span<const char> bytes) {
  Peer& peer = peers_[to];
  const int64_t number = peer.sent++;
  std::vector<char>& message = peer.unsent.emplace_back(sizeof number + bytes.size());
  memcpy(message.data(), &number, sizeof number);
  if (!bytes.empty()) memcpy(message.data() + sizeof number, bytes.data(), bytes.size());
  return resend(to, peer);
}

Status ReliableWorld::flush() {
  Patience patience(time_limit());
  for (resend_all(); !blocked_.empty(); resend_all()) {
    if (patience.wait()) continue;
    return {WEIR_E_MPI, "messages to rank " + std::to_string(*blocked_.begin()) +
                            " could not be sent within " +
                            std::to_string(static_cast<int>(time_limit())) + " s (time_limit_s)"};
  }
  return {};
}

void ReliableWorld::take(Message message) {
  int64_t number = 0;
  if (message.bytes.size() < sizeof number) return;
  memcpy(&number, message.bytes.data(), sizeof number);
  message.bytes.erase(message.bytes.begin(), message.bytes.begin() + sizeof number);
  Peer& peer = peers_[message.from];
  if (number < peer.received) return;
  const int from = message.from;
  if (number > peer.received) {
    if (peer.early.empty()) peer.missing_since_s = now_s();
    missing_.insert(from);
    peer.early.emplace(number, std::move(message.bytes));
    return;
  }
  ++peer.received;
  ready_.push_back(std::move(message));
  for (auto at = peer.early.begin(); at != peer.early.end() && at->first == peer.received;
       at = peer.early.erase(at)) {
    ++peer.received;
    peer.missing_since_s = now_s();
    ready_.push_back({from, std::move(at->second)});
  }
  if (peer.early.empty()) missing_.erase(from);
}

Status ReliableWorld::look_for_missing() {
  for (const int from : missing_) {
    if (now_s() - peers_[from].missing_since_s <= time_limit()) continue;
    return {WEIR_E_MPI, "a message of rank " + std::to_string(from) +
                            " was lost: later ones came, and it did not within " +
                            std::to_string(static_cast<int>(time_limit())) + " s (time_limit_s)"};
  }
  return {};
}

Result<std::optional<Message>> ReliableWorld::receive() {
  resend_all();
  while (ready_.empty()) {
    Result<std::optional<Message>> came = world_->receive();
    if (!came.ok()) {
      if (deaf_since_s_ == 0) deaf_since_s_ = now_s();
      if (now_s() - deaf_since_s_ > time_limit()) return came.status();
      return std::optional<Message>();
    }
    deaf_since_s_ = 0;
    if (!came->has_value()) {
      WEIR_TRY(look_for_missing());
      return std::optional<Message>();
    }
    take(std::move(**came));
  }
  Message first = std::move(ready_.front());
  ready_.pop_front();
  return std::optional<Message>(std::move(first));
}

}  // namespace weir::output
