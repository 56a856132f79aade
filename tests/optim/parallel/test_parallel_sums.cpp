// What ranks send each other: partitions, compression with error feedback, sums in a fixed order.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <mutex>

#include "engine/random.h"
#include "optim/parallel/joint_statistics.h"
#include "optim/parallel/wire_codes.h"
#include "tests/support/thread_ranks.h"

namespace tritgrad::test::test_parallel_sums {
namespace {

constexpr std::int64_t kLengths[] = {0, 1, 7, 8, 9, 31, 32, 33, 100, 257, 1000};
constexpr float kEpsilon = std::numeric_limits<float>::epsilon();

// Numbers of a heavy tail: normal ones to the third power.
std::vector<float> numbers(std::int64_t n, std::uint32_t stream) {
  std::vector<float> x;
  for (std::int64_t i = 0; i < n; ++i) {
    const float z = random_normal({3, stream, 0}, static_cast<std::uint64_t>(i));
    x.push_back(z * z * z);
  }
  return x;
}

double norm1(const std::vector<float>& x) {
  double sum = 0.0;
  for (float v : x) sum += std::abs(double{v});
  return sum;
}

double squares(const std::vector<float>& x) {
  double sum = 0.0;
  for (float v : x) sum += double{v} * double{v};
  return sum;
}

float largest(const std::vector<float>& x) {
  float most = 0.0f;
  for (float v : x) most = std::max(most, std::abs(v));
  return most;
}

void reduce_one(Communicator& ranks, Reduction& reduction) {
  Reduction* const one = &reduction;
  Reducer(ranks).reduce(std::span(&one, 1));
}

struct Trip {
  std::vector<float> sent, dropped;
};

Trip trip(WireCode compression, std::vector<float> x, const std::uint8_t* used = nullptr) {
  const auto n = std::ssize(x);
  std::vector<std::byte> bytes(static_cast<std::size_t>(wire_bytes(compression, n)));
  compress(compression, x.data(), n, used, bytes.data());
  std::vector<float> sent(x.size());
  decompress(compression, bytes.data(), n, used, sent.data());
  return {sent, x};
}

}  // namespace

TEST_CASE("parallel sums: a partition covers every element once, in whole bytes of bits") {
  for (const std::int64_t n : kLengths) {
    for (int ranks = 1; ranks <= 9; ++ranks) {
      const Partition partition{n, ranks};
      CHECK(partition.begin(0) == 0);
      CHECK(partition.begin(ranks) == n);
      CHECK(partition.chunk() % 8 == 0);
      for (int r = 0; r < ranks; ++r) {
        CHECK(partition.size(r) >= 0);
        CHECK(partition.size(r) <= partition.size(0));
      }
    }
  }
}

TEST_CASE("parallel sums: compression drops what it says, and contracts as its theory says") {
  for (const std::int64_t n : kLengths) {
    if (n == 0) continue;
    CAPTURE(n);
    const std::vector<float> x = numbers(n, 1);
    const double rho = norm1(x) / std::sqrt(static_cast<double>(n) * squares(x));
    for (const WireCode compression :
         {WireCode::kMeanSigns, WireCode::kRmsSigns, WireCode::kInt8}) {
      CAPTURE(static_cast<int>(compression));
      const Trip result = trip(compression, x);
      for (std::size_t i = 0; i < x.size(); ++i) {
        // One subtraction, rounded; and where what was sent is larger, its own rounding.
        const float bound = kEpsilon * (std::abs(x[i]) + std::abs(result.sent[i]));
        CHECK(std::abs(result.sent[i] + result.dropped[i] - x[i]) <= bound);
      }
      // The scale is rounded to fp32, and sums of n products to n times that.
      const double slack = 8.0 * static_cast<double>(n) * double{kEpsilon} * squares(x);
      const double dropped = squares(result.dropped);
      if (compression == WireCode::kMeanSigns) {
        CHECK(std::abs(dropped - (1.0 - rho * rho) * squares(x)) <= slack);
      } else if (compression == WireCode::kRmsSigns) {
        CHECK(std::abs(dropped - 2.0 * (1.0 - rho) * squares(x)) <= slack);
      } else {
        // Half a step of 1/127 of the largest in a group, whose scale bf16 rounds by 1 / 256.
        const float step = largest(x) / 127.0f * (1.0f + 0x1p-8f);
        CHECK(largest(result.dropped) <= 0.5f * step * (1.0f + 4.0f * kEpsilon));
      }
    }
  }
}

TEST_CASE("parallel sums: zero counts as positive; what takes no part stays zero") {
  const Trip zeros = trip(WireCode::kMeanSigns, {0.0f, -0.0f, 3.0f});
  CHECK(zeros.sent == std::vector<float>{1.0f, 1.0f, 1.0f});
  CHECK(zeros.dropped == std::vector<float>{-1.0f, -1.0f, 2.0f});

  const std::uint8_t used[] = {1, 0, 1, 0, 1};
  for (const WireCode compression : {WireCode::kMeanSigns, WireCode::kRmsSigns}) {
    const Trip masked = trip(compression, {4.0f, 0.0f, -4.0f, 0.0f, 4.0f}, used);
    CHECK(masked.sent == std::vector<float>{4.0f, 0.0f, -4.0f, 0.0f, 4.0f});
    CHECK(squares(masked.dropped) == 0.0);
  }
  const std::uint8_t none[] = {0, 0};
  CHECK(squares(trip(WireCode::kMeanSigns, {0.0f, 0.0f}, none).sent) == 0.0);
}

TEST_CASE(
    "parallel sums: the compressed mean is the same on all ranks and loses nothing for good") {
  constexpr int kSteps = 20;
  for (const WireCode compression : {WireCode::kMeanSigns, WireCode::kInt8}) {
    for (const std::int64_t n : {1, 9, 100, 1000}) {
      for (int count : {1, 2, 3, 4}) {
        CAPTURE(count);
        CAPTURE(n);
        const auto size = static_cast<std::size_t>(n);
        std::mutex mutex;
        std::vector<double> given(size), left(size);
        std::vector<std::vector<float>> results(static_cast<std::size_t>(count));
        std::vector<double> received(size);
        std::int64_t most_bytes = 0, forecast = 0;
        double magnitude = 0.0;
        run_ranks(count, [&](Communicator& ranks) {
          CompressedMean mean(ranks, compression, n);
          std::vector<double> own_given(size), own_received(size);
          double own_magnitude = 0.0;
          std::vector<float> x;
          for (int step = 0; step < kSteps; ++step) {
            x = numbers(n, static_cast<std::uint32_t>(100 * step + ranks.rank()));
            for (std::size_t i = 0; i < size; ++i) own_given[i] += double{x[i]} / count;
            mean.attach(x.data(), nullptr);
            reduce_one(ranks, mean);
            own_magnitude = std::max({own_magnitude, double{largest(x)}});
            for (std::size_t i = 0; i < size; ++i) own_received[i] += double{x[i]};
          }
          const std::scoped_lock lock(mutex);
          results[static_cast<std::size_t>(ranks.rank())] = x;
          received = own_received;
          magnitude = std::max(magnitude, own_magnitude);
          for (std::size_t i = 0; i < size; ++i) {
            given[i] += own_given[i];
            left[i] += double{mean.worker_error()[i]} / count;
            magnitude = std::max(magnitude, std::abs(double{mean.worker_error()[i]}));
          }
          const auto begin = static_cast<std::size_t>(mean.partition().begin(ranks.rank()));
          for (std::size_t i = 0; i < mean.server_error().size(); ++i) {
            left[begin + i] += double{mean.server_error()[i]};
          }
          most_bytes = std::max(most_bytes, ranks.bytes_sent());
          if (ranks.rank() == 0) forecast = kSteps * (bytes_sent(mean, 0, count) + (count - 1));
        });
        for (const std::vector<float>& x : results) {
          REQUIRE(std::memcmp(x.data(), results[0].data(), size * sizeof(float)) == 0);
        }
        // Each step rounds a few sums of numbers that are at most a few `magnitude`; the largest
        // sum of a worker has both the error and the new number in it, 30 at most here.
        const double bound = kSteps * (4.0 + 2.0 * count) * double{kEpsilon} * (magnitude + 60.0);
        for (std::size_t i = 0; i < size; ++i) {
          CHECK(std::abs(received[i] + left[i] - given[i]) <= bound);
        }
        CHECK(most_bytes == forecast);
      }
    }
  }
}

TEST_CASE("parallel sums: signs take a sixteenth of what fp16 would, within their scales") {
  const std::int64_t n = 784 * 512;
  for (int ranks : {2, 4, 8}) {
    const double fp16 = 4.0 * static_cast<double>(n) * (ranks - 1) / ranks;
    run_ranks(ranks, [&](Communicator& all) {
      CompressedMean mean(all, WireCode::kMeanSigns, n);
      std::vector<float> x = numbers(n, static_cast<std::uint32_t>(all.rank()));
      mean.attach(x.data(), nullptr);
      reduce_one(all, mean);
      const double ratio = fp16 / static_cast<double>(all.bytes_sent());
      if (ratio < 15.9 || ratio > 16.0) throw std::runtime_error("another ratio");
    });
  }
}

TEST_CASE("parallel sums: sums are made in the order of the ranks") {
  for (const std::int64_t n : kLengths) {
    for (int count : {1, 2, 4}) {
      std::vector<float> expected(static_cast<std::size_t>(n)), magnitudes = expected;
      for (int r = 0; r < count; ++r) {
        const std::vector<float> x = numbers(n, static_cast<std::uint32_t>(r));
        for (std::size_t i = 0; i < x.size(); ++i) {
          expected[i] = r == 0 ? x[i] : expected[i] + x[i];
          magnitudes[i] += std::abs(x[i]);
        }
      }
      run_ranks(count, [&](Communicator& ranks) {
        FloatSum sum(ranks, WireCode::kFp32, n);
        std::vector<float> x = numbers(n, static_cast<std::uint32_t>(ranks.rank()));
        sum.attach(x.data());
        reduce_one(ranks, sum);
        if (x != expected) throw std::runtime_error("another sum");
        if (ranks.bytes_sent() != bytes_sent(sum, ranks.rank(), count) + count - 1) {
          throw std::runtime_error("another number of bytes");
        }
        // bf16 has 8 bits of mantissa: each addend and the sum are off by 2^-9 of their size.
        std::vector<float> rough = numbers(n, static_cast<std::uint32_t>(ranks.rank()));
        std::vector<std::uint16_t> halves(rough.size());
        kernels().codecs.float_to_bf16(halves.data(), rough.data(), nullptr, n);
        FloatSum rough_sum(ranks, WireCode::kBf16, n);
        rough_sum.attach(std::as_writable_bytes(std::span(halves)));
        reduce_one(ranks, rough_sum);
        kernels().codecs.bf16_to_float(rough.data(), halves.data(), n);
        for (std::size_t i = 0; i < rough.size(); ++i) {
          const float size = std::abs(expected[i]) + magnitudes[i];
          if (std::abs(rough[i] - expected[i]) > size * 0x1p-8f) {
            throw std::runtime_error("bf16 is too far off");
          }
        }
      });
    }
  }
}

TEST_CASE("parallel sums: running statistics move as by one part after the other") {
  constexpr std::int64_t kSize = 100;
  constexpr int kParts = 6;
  const auto shown = [](int part) { return numbers(kSize, static_cast<std::uint32_t>(part)); };
  ParameterStore alone;
  Parameter& expected = alone.add({"mean", Role::kStatistic, Shape{kSize}, {}, {}}, 1);
  for (int part = 0; part < kParts; ++part) expected.move_average(shown(part).data());
  for (const bool exact : {true, false}) {
    for (const int count : {1, 2, 3, 4, 8}) {
      CAPTURE(count);
      std::vector<std::vector<float>> results(static_cast<std::size_t>(count));
      run_ranks(count, [&](Communicator& ranks) {
        ParameterStore store;
        Parameter& average = store.add({"mean", Role::kStatistic, Shape{kSize}, {}, {}}, 1);
        JointStatistics statistics(ranks, store, exact);
        const Parts parts = Parts::of_rank(ranks.rank(), count, kParts);
        statistics.begin(parts);
        for (int part = parts.begin; part < parts.end; ++part) {
          statistics.begin_part(part);
          average.move_average(shown(part).data());
        }
        statistics.end_parts();
        reduce_one(ranks, statistics.reduction());
        statistics.deliver();
        const float* values = average.storage().fp32_data();
        results[static_cast<std::size_t>(ranks.rank())].assign(values, values + kSize);
        // Both ways a chunk of the sum, and a note, to every other rank, whatever their number.
        const Partition partition{kSize, count};
        const std::int64_t own = partition.size(ranks.rank());
        const std::int64_t sent = 4 * (kSize - own + (count - 1) * own) + count - 1;
        if (!exact && ranks.bytes_sent() != sent) throw std::runtime_error("other bytes");
      });
      for (const std::vector<float>& result : results) {
        CHECK(result == results.front());
        for (std::int64_t i = 0; i < kSize; ++i) {
          // Of P + N sums each rounds what is at most the largest part, a few times.
          float most = 0.0f;
          for (int part = 0; part < kParts; ++part) {
            most = std::max(most, std::abs(shown(part)[static_cast<std::size_t>(i)]));
          }
          const float bound = exact ? 0.0f : 4.0f * kEpsilon * (kParts + 8) * most;
          const float off = result[static_cast<std::size_t>(i)] - expected.storage().fp32_data()[i];
          CHECK(std::abs(off) <= bound);
        }
      }
    }
  }
}

TEST_CASE("parallel sums: a part that shows no finite statistics moves none") {
  constexpr std::int64_t kSize = 3;
  constexpr float kBefore = 2.0f;
  constexpr float kInf = std::numeric_limits<float>::infinity();
  for (const bool exact : {true, false}) {
    CAPTURE(exact);
    std::vector<std::vector<float>> results(2);
    run_ranks(2, [&](Communicator& ranks) {
      ParameterStore store;
      Parameter& good = store.add({"good", Role::kStatistic, Shape{kSize}, {}, {}}, 1);
      Parameter& bad = store.add({"bad", Role::kStatistic, Shape{kSize}, {}, {}}, 1);
      for (Parameter* average : {&good, &bad}) {
        std::fill_n(average->storage().fp32_data(), kSize, kBefore);
      }
      JointStatistics statistics(ranks, store, exact);
      statistics.begin(Parts::of_rank(ranks.rank(), 2, 2));
      statistics.begin_part(ranks.rank());
      const std::vector<float> shown{4.0f, 4.0f, 4.0f}, broken{4.0f, kInf, 4.0f};
      good.move_average(shown.data());
      bad.move_average(ranks.rank() == 0 ? broken.data() : shown.data());
      statistics.end_parts();
      reduce_one(ranks, statistics.reduction());
      statistics.deliver();
      std::vector<float>& result = results[static_cast<std::size_t>(ranks.rank())];
      result.assign(good.storage().fp32_data(), good.storage().fp32_data() + kSize);
      result.insert(result.end(), bad.storage().fp32_data(), bad.storage().fp32_data() + kSize);
    });
    CHECK(results[0] == results[1]);
    // Two moves of a tenth towards 4, and one.
    for (std::size_t i = 0; i < 2 * kSize; ++i) {
      const float expected = i < kSize ? 4.0f - 2.0f * 0.81f : 4.0f - 2.0f * 0.9f;
      CHECK(std::abs(results[0][i] - expected) <= 4.0f * 4.0f * kEpsilon);
    }
  }
}

TEST_CASE("parallel sums: flags become bits, the lowest first, and come back") {
  for (const std::int64_t n : kLengths) {
    const auto size = static_cast<std::size_t>(n);
    std::vector<std::uint8_t> flags, expected((size + 7) / 8, 0), back(size + 1, 0x5A);
    for (std::size_t i = 0; i < size; ++i) {
      flags.push_back(random_bits({6, 6, 6}, i) & 1);
      expected[i / 8] |= static_cast<std::uint8_t>(flags[i] << i % 8);
    }
    expected.push_back(0x5A);  // behind the end
    std::vector<std::uint8_t> bits(expected.size(), 0x5A);
    pack_flags(flags.data(), n, bits.data());
    CHECK(bits == expected);
    unpack_flags(bits.data(), n, back.data());
    flags.push_back(0x5A);
    CHECK(back == flags);
  }
}

TEST_CASE("parallel sums: votes travel in the fewest bits that hold them, and come back") {
  CHECK(vote_code(1, false) == WireCode::kSigns);
  CHECK(vote_code(1, true) == WireCode::kTrits);
  CHECK(vote_code(7, true) == WireCode::kFourBits);
  CHECK(vote_code(8, false) == WireCode::kFiveBits);
  CHECK(vote_code(31, true) == WireCode::kSixBits);
  CHECK(vote_code(32, true) == WireCode::kBytes);
  CHECK(vote_code(kMostVotes, true) == WireCode::kBytes);
  CHECK_THROWS(vote_code(kMostVotes + 1, true));
  for (const std::int64_t n : kLengths) {
    for (const int most : {1, 2, 7, 8, 15, 31, 32, 127}) {
      for (const bool zeros : {false, true}) {
        if (!zeros && most > 1) continue;
        const WireCode code = vote_code(most, zeros);
        std::vector<std::int8_t> votes, back(static_cast<std::size_t>(n), 99);
        for (std::int64_t i = 0; i < n; ++i) {
          const std::uint32_t bits = random_bits({5, 5, 5}, static_cast<std::uint64_t>(i));
          const int range = 2 * most + 1;
          const int vote = static_cast<int>(bits % static_cast<std::uint32_t>(range)) - most;
          votes.push_back(static_cast<std::int8_t>(zeros || vote != 0 ? vote : 1));
        }
        std::vector<std::byte> bytes(static_cast<std::size_t>(wire_bytes(code, n)) + 1,
                                     std::byte{0x5A});
        pack_votes(code, votes.data(), n, bytes.data());
        CHECK(bytes.back() == std::byte{0x5A});
        unpack_votes(code, bytes.data(), n, back.data());
        CHECK(back == votes);
      }
    }
  }
}

}  // namespace tritgrad::test::test_parallel_sums
