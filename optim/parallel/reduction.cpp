#include "optim/parallel/reduction.h"

#include <numeric>

namespace tritgrad {
namespace {

using Message = std::vector<std::byte>;

// A message with room for size(reduction) bytes of each.
template <typename Size>
Message message(std::span<Reduction* const> reductions, const Size& size) {
  std::int64_t bytes = 0;
  for (const Reduction* reduction : reductions) bytes += size(*reduction);
  return Message(static_cast<std::size_t>(bytes));
}

// Calls body(reduction, place) for the places in a message of all that have anything in it.
template <typename Size, typename Body>
void for_each_place(std::span<Reduction* const> reductions, std::byte* place, const Size& size,
                    const Body& body) {
  for (Reduction* reduction : reductions) {
    const std::int64_t bytes = size(*reduction);
    if (bytes > 0) body(*reduction, place);
    place += bytes;
  }
}

template <typename Byte>
std::vector<std::span<Byte>> views(std::vector<Message>& messages) {
  return {messages.begin(), messages.end()};
}

void exchange_notes(Communicator& ranks, std::span<Reduction* const> reductions) {
  Message own;
  for (const Reduction* reduction : reductions) {
    own.push_back(static_cast<std::byte>(reduction->note()));
  }
  std::vector<Message> all(static_cast<std::size_t>(ranks.size()), Message(own.size()));
  ranks.all_gather(own, views<std::byte>(all));
  for (int r = 0; r < ranks.size(); ++r) {
    for (std::size_t i = 0; i < own.size(); ++i) {
      reductions[i]->read_note(r,
                               std::to_integer<std::uint8_t>(all[static_cast<std::size_t>(r)][i]));
    }
  }
}

}  // namespace

void reduce(Communicator& ranks, std::span<Reduction* const> reductions) {
  const int here = ranks.rank();
  exchange_notes(ranks, reductions);

  std::vector<Message> sent, received;
  for (int r = 0; r < ranks.size(); ++r) {
    const auto to = [&](const Reduction& one) { return one.share_bytes(here, r); };
    sent.push_back(message(reductions, to));
    for_each_place(reductions, sent.back().data(), to,
                   [&](Reduction& one, std::byte* place) { one.write_share(r, place); });
    received.push_back(
        message(reductions, [&](const Reduction& one) { return one.share_bytes(r, here); }));
  }
  ranks.exchange(views<const std::byte>(sent), views<std::byte>(received));
  for (int r = 0; r < ranks.size(); ++r) {
    for_each_place(
        reductions, received[static_cast<std::size_t>(r)].data(),
        [&](const Reduction& one) { return one.share_bytes(r, here); },
        [&](Reduction& one, const std::byte* place) { one.read_share(r, place); });
  }

  const auto of = [](int owner) {
    return [owner](const Reduction& one) { return one.result_bytes(owner); };
  };
  Message own = message(reductions, of(here));
  for_each_place(reductions, own.data(), of(here),
                 [](Reduction& one, std::byte* place) { one.write_result(place); });
  received.clear();
  for (int r = 0; r < ranks.size(); ++r) received.push_back(message(reductions, of(r)));
  ranks.all_gather(own, views<std::byte>(received));
  for (int r = 0; r < ranks.size(); ++r) {
    for_each_place(reductions, received[static_cast<std::size_t>(r)].data(), of(r),
                   [&](Reduction& one, const std::byte* place) { one.read_result(r, place); });
  }
}

std::int64_t bytes_sent(const Reduction& reduction, int rank, int count) {
  std::int64_t bytes = (count - 1) * reduction.result_bytes(rank);
  for (int r = 0; r < count; ++r) {
    if (r != rank) bytes += reduction.share_bytes(rank, r);
  }
  return bytes;
}

}  // namespace tritgrad
