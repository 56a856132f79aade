// Sign votes: the statistics of first passage, the rails, the zero, and both flip and reset rules.
#include "optim/rule.h"
#include "tests/support/support.h"

namespace tritgrad::test::test_votes {
namespace {

struct Passage {
  double mean_steps;
  double right_share;
};

// Feeds a counter with votes that are right with probability p until the trit moves.
Passage first_passage(int threshold, double p, int trials) {
  FlipPolicy policy;
  policy.threshold = threshold;
  policy.on_flip = OnFlip::kReset;
  std::int64_t steps = 0;
  int right = 0;
  for (int trial = 0; trial < trials; ++trial) {
    TritState state{};
    for (std::uint64_t i = 0; state.trit == 0; ++i) {
      const RandomKey key{42, static_cast<std::uint32_t>(threshold),
                          static_cast<std::uint32_t>(trial)};
      FlipCounts counts;
      state = accumulate(state, static_cast<double>(random_uniform(key, i)) < p ? 1 : -1, policy,
                         counts);
      ++steps;
    }
    right += state.trit == 1;
  }
  return {static_cast<double>(steps) / trials, static_cast<double>(right) / trials};
}

FlipPolicy policy_of(int threshold, OnFlip on_flip, Transition transition) {
  FlipPolicy policy;
  policy.threshold = threshold;
  policy.on_flip = on_flip;
  policy.transition = transition;
  return policy;
}

}  // namespace

TEST_CASE("votes: first passage times and directions agree with the random walk within 5 %") {
  // k = threshold + 1. Pure noise: E[T] = k^2. Drift: E[T] = k/(2p-1) (r^k-1)/(r^k+1), r = p/(1-p),
  // and the flip is right with probability 1/(1+r^-k).
  for (int k : {8, 32}) {
    CAPTURE(k);
    // T of pure noise has deviation sqrt(2/3) k^2; 4000 trials make 1.3 %.
    CHECK(first_passage(k - 1, 0.5, 4000).mean_steps == doctest::Approx(k * k).epsilon(0.05));
    const double p = 0.55;
    const double r = p / (1.0 - p);
    const double rk = std::pow(r, k);
    const Passage passage = first_passage(k - 1, p, 4000);
    const double expected = k / (2.0 * p - 1.0) * (rk - 1.0) / (rk + 1.0);
    CHECK(passage.mean_steps == doctest::Approx(expected).epsilon(0.05));
    CHECK(passage.right_share == doctest::Approx(rk / (rk + 1.0)).epsilon(0.05));
  }
}

TEST_CASE("votes: the trit moves at exactly threshold + 1 votes, both ways") {
  for (int threshold : {0, 7, 31, 42, 126}) {
    for (OnFlip on_flip : {OnFlip::kReset, OnFlip::kCarry}) {
      for (int direction : {1, -1}) {
        const FlipPolicy policy = policy_of(threshold, on_flip, Transition::kStepOneTrit);
        TritState state{};
        FlipCounts counts;
        for (int vote = 0; vote < threshold; ++vote)
          state = accumulate(state, direction, policy, counts);
        CHECK(state.trit == 0);
        state = accumulate(state, direction, policy, counts);
        CHECK(state.trit == direction);
        CHECK(counts.flips == 1);
        CHECK(state.accumulator == (on_flip == OnFlip::kReset ? 0 : -direction * threshold));
      }
    }
  }
}

TEST_CASE("votes: 10,000 equal votes at a rail never wrap, and reversal is not delayed") {
  for (int threshold : {31, 42, 126}) {
    for (OnFlip on_flip : {OnFlip::kReset, OnFlip::kCarry}) {
      for (Transition transition : {Transition::kStepOneTrit, Transition::kSetSign}) {
        const FlipPolicy policy = policy_of(threshold, on_flip, transition);
        TritState state{};
        FlipCounts counts;
        for (int vote = 0; vote < 10000; ++vote) {
          state = accumulate(state, 1, policy, counts);
          REQUIRE(std::abs(state.accumulator) <= 126);
          REQUIRE(state.trit >= 0);
        }
        CHECK(state.trit == 1);
        CHECK(counts.flips == 1);
        CHECK(counts.rail_flips > 0);
        int votes = 0;
        while (state.trit == 1) {
          state = accumulate(state, -1, policy, counts);
          ++votes;
        }
        // At most a full counter plus one threshold: no wind-up beyond the rail.
        CHECK(votes <= 2 * threshold + 1);
      }
    }
  }
}

TEST_CASE("votes: zero is reachable when stepping one trit, and lost when setting the sign") {
  for (OnFlip on_flip : {OnFlip::kReset, OnFlip::kCarry}) {
    FlipCounts counts;
    TritState step{1, 0};
    TritState set{1, 0};
    bool step_saw_zero = false;
    bool set_saw_zero = false;
    for (int vote = 0; vote < 100; ++vote) {
      step = accumulate(step, -1, policy_of(7, on_flip, Transition::kStepOneTrit), counts);
      set = accumulate(set, -1, policy_of(7, on_flip, Transition::kSetSign), counts);
      step_saw_zero |= step.trit == 0;
      set_saw_zero |= set.trit == 0;
    }
    CHECK(step_saw_zero);
    CHECK_FALSE(set_saw_zero);
    CHECK(step.trit == -1);
    CHECK(set.trit == -1);
  }
}

TEST_CASE("votes: with carry, trit and accumulator are one lossless fixed-point number") {
  const FlipPolicy policy = policy_of(42, OnFlip::kCarry, Transition::kStepOneTrit);
  TritState state{};
  int exact = 0;
  FlipCounts counts;
  for (std::uint64_t i = 0; i < 20000; ++i) {
    const int levels = static_cast<int>(random_below({1, 2, 3}, i, 61)) - 30;
    exact = std::clamp(exact + levels, -127, 127);
    state = accumulate(state, levels, policy, counts);
    REQUIRE(85 * state.trit + state.accumulator == exact);
  }
  CHECK(counts.flips > 100);
}

TEST_CASE("votes: a falling lr raises the threshold to 126, then thins the votes") {
  FlipPolicy policy = policy_of(31, OnFlip::kReset, Transition::kStepOneTrit);
  CHECK(threshold_for(policy, 1.0f / 32.0f) == 31);
  CHECK(threshold_for(policy, 1.0f / 64.0f) == 63);
  CHECK(threshold_for(policy, 1.0f / 127.0f) == 126);
  CHECK(threshold_for(policy, 1e-6f) == 126);
  CHECK(threshold_for(policy, 0.5f) == 31);
  CHECK(threshold_for(policy, 0.0f) == 126);  // no learning is no flipping
  policy.on_flip = OnFlip::kCarry;
  CHECK(threshold_for(policy, 1e-6f) == 31);

  // Below one vote per step: lr = 0.1 / 127 casts a tenth of the votes.
  FormatSpec spec;
  spec.kind = FormatKind::kTernary;
  spec.flips = policy_of(126, OnFlip::kReset, Transition::kStepOneTrit);
  Storage storage(spec, {100, 320}, Category::kWeights);
  const std::vector<float> down(kBlock, 1.0f);
  for_each_block(storage.shape(), [&](const Block& block) {
    descend_block(storage, block, down.data(), {0.1f / 127.0f, {1, 2, 3}});
  });
  double cast = 0.0;
  const std::vector<Plane> planes = storage.planes();
  for (const std::byte a : planes[1].bytes) {
    const int votes = static_cast<int>(static_cast<std::int8_t>(a));
    REQUIRE((votes == 0 || votes == -1));
    cast += votes != 0;
  }
  // Binomial with n = 32000, p = .1: deviation .0017; five of them.
  CHECK(std::abs(cast / 32000.0 - 0.1) < 0.0085);
}

TEST_CASE("votes: without a vote nothing flips, however the threshold moves") {
  FormatSpec spec;
  spec.kind = FormatKind::kTernary;
  spec.flips = policy_of(31, OnFlip::kReset, Transition::kStepOneTrit);
  Storage storage(spec, {10, 330}, Category::kWeights);
  const std::vector<float> down(kBlock, 1.0f);
  const std::vector<float> still(kBlock, 0.0f);
  const auto pass = [&](const std::vector<float>& direction, float lr, std::uint32_t step) {
    for_each_block(storage.shape(), [&](const Block& block) {
      descend_block(storage, block, direction.data(), {lr, {1, 2, step}});
    });
  };
  for (std::uint32_t step = 1; step <= 100; ++step) pass(down, 1.0f / 127.0f, step);
  const std::vector<std::byte> before = all_bytes(storage);  // counters near 100, no flip yet
  pass(still, 0.0f, 101);
  pass(still, 1.0f / 32.0f, 102);  // the threshold falls to 31, below every counter
  CHECK(all_bytes(storage) == before);
  pass(down, 1.0f / 32.0f, 103);
  CHECK(all_bytes(storage) != before);
}

TEST_CASE("votes: the sign rule descends a quadratic to its ternary optimum, from any start") {
  FormatSpec spec;
  spec.kind = FormatKind::kTernary;
  RuleSpec rule_spec;
  rule_spec.kind = RuleKind::kSign;
  const auto rule = make_rule(rule_spec);
  const std::vector<float> target{-1.0f, -1.0f, 0.0f, 0.0f, 1.0f, 1.0f};
  for (OnFlip on_flip : {OnFlip::kReset, OnFlip::kCarry}) {
    spec.flips = policy_of(31, on_flip, Transition::kStepOneTrit);
    Storage storage(spec, {1, 6}, Category::kWeights);
    encode_all(storage, {1.0f, 0.0f, -1.0f, 1.0f, -1.0f, 0.0f});
    std::vector<float> value(6), grad(6), direction(6);
    const Block block{0, 0, 6};
    for (std::uint32_t step = 1; step <= 300; ++step) {
      storage.decode_value(block, value.data());
      for (std::size_t i = 0; i < 6; ++i) grad[i] = value[i] - target[i];
      rule->direct({0, 6, grad.data(), nullptr, {}, direction.data(), nullptr});
      descend_block(storage, block, direction.data(), {1.0f / 32.0f, {1, 1, step}});
    }
    storage.decode_value(block, value.data());
    CHECK(value == target);
  }
}

TEST_CASE("votes: zero and non-finite gradients cast no vote; decay pulls to zero") {
  RuleSpec spec;
  spec.kind = RuleKind::kSign;
  const float inf = std::numeric_limits<float>::infinity();
  const std::vector<float> grad{0.0f, -0.0f, std::nanf(""), inf, -inf, 2.0f, -1e-30f};
  std::vector<float> direction(grad.size());
  make_rule(spec)->direct({0, 7, grad.data(), nullptr, {}, direction.data(), nullptr});
  CHECK(direction == std::vector<float>{0.0f, 0.0f, 0.0f, 0.0f, 0.0f, 1.0f, -1.0f});

  spec.weight_decay = 0.25;
  const std::vector<float> zero(3, 0.0f);
  const std::vector<float> trits{-1.0f, 0.0f, 1.0f};
  make_rule(spec)->direct({0, 3, zero.data(), trits.data(), {}, direction.data(), nullptr});
  CHECK(direction[0] == -0.25f);
  CHECK(direction[1] == 0.0f);
  CHECK(direction[2] == 0.25f);
}

}  // namespace tritgrad::test::test_votes
