// Reverse-mode automatic differentiation on an arena.
//
// Forward: every op appends one node (a small closure) to a flat list. Backward: the list is walked
// from its end, once; no recursion, no reference counts, no topological sort, linear in the number
// of nodes even when subexpressions are shared. All memory is the arena's; reset() forgets the step
// and keeps the memory, so a warm step allocates nothing. Within a step, the memory of gradients
// that are over, and of values that nobody needs any more, serves those that follow; a segment()
// keeps nothing for backward but what it begins with, from which backward computes it again (Chen
// et al. 2016). The tape is an ordinary object: one per model being trained, whose parameters
// outlive it.
#pragma once

#include <initializer_list>
#include <limits>
#include <type_traits>
#include <utility>
#include <vector>

#include "engine/memory/arena.h"
#include "engine/parameter.h"
#include "engine/tensor.h"

namespace tritgrad {

// The notes of the tape on a value of its own.
struct ValueNote {
  bool wants_grad = false;
  bool is_read = false;   // by a backward step, or by who took its memory over
  bool released = false;  // by who made use of it
  Tensor gradient = {};   // null while there is none
};

// A value on the tape and the gradient of the loss with respect to it. Cheap to copy.
struct Var {
  Tensor value;
  ValueNote* note = nullptr;  // null for constants

  bool wants_grad() const { return note != nullptr && note->wants_grad; }
  // dL/dvalue. It has memory from the first backward step that adds to it until its producer's step
  // is over: null before and after. A leaf has no producer, and keeps it until reset().
  Tensor grad() const { return note == nullptr ? Tensor{} : note->gradient; }
  const Shape& shape() const { return value.shape; }
};

// The memory in which a backward step leaves the gradient of an input.
struct GradientTarget {
  Tensor grad;
  bool fresh;  // nothing is there yet: write every element; otherwise add to it
};

class Tape {
 public:
  Tape()
      : arena_(Category::kActivations),
        gradients_(Category::kGradients),
        workspace_(Category::kWorkspace) {}
  Tape(const Tape&) = delete;
  Tape& operator=(const Tape&) = delete;
  ~Tape() { forget_parameters(); }

  // Returns a leaf without gradient; the memory is the caller's and must outlive backward().
  Var constant(const Tensor& value) const { return {value, {}}; }
  // Returns a new value, not initialised, which will have a gradient if wanted.
  Var variable(const Shape& shape, bool wants_grad = true);
  // Returns a new value with a gradient that the op keeps in another form than floats: it has no
  // memory here, so no op may read it. The shape is that of its gradient.
  Var without_value(const Shape& shape);
  // Returns a new value, without a gradient, in the memory of x, whose own value is over then.
  // During inference only.
  Var take_over(const Var& x);
  // Says that the caller, and whoever else has x, will not look at its value any more, nor give it
  // to another op. Unless a backward step reads it, its memory serves what comes next. To be called
  // once for each x.
  void release(const Var& x);

  // Returns body(x), which has the shape of x, and gives back all other memory that body took. So
  // that nothing is missing, backward calls body once more before it walks what body records. body
  // must compute the same both times, release x neither time, and read no other value that wants a
  // gradient. Segments may lie in one another.
  template <typename Body>
  Var segment(const Var& x, const Body& body) {
    const Var y = variable(x.shape());
    const std::size_t held = held_parameters_.size();
    const bool within = std::exchange(in_segment_, true);
    const Place before = enter();
    copy_result(body(x), y);
    leave(before);
    in_segment_ = within;
    if (!recording()) return y;
    record(y, {x}, {}, [this, x, y, body, held] {
      begin_again(x, y, held);
      hand_down(y, body(x));
    });
    nodes_.back().is_segment = true;
    return y;
  }

  // Returns memory that lives until reset().
  Tensor tensor(const Shape& shape) { return {arena_.allocate<float>(shape.size()), shape}; }
  template <typename T>
  T* allocate(std::int64_t n) {
    return arena_.allocate<T>(n);
  }
  // Returns scratch for one op's forward or backward step, and for the gradients that it offered:
  // valid until the next call of scratch_reset().
  Tensor scratch(const Shape& shape) { return {workspace_.allocate<float>(shape.size()), shape}; }
  template <typename T>
  T* allocate_scratch(std::int64_t n) {
    return workspace_.allocate<T>(n);
  }
  void scratch_reset() { workspace_.reset(); }

  // Whether anything is kept for backward: not during inference, nor when a segment is first
  // computed.
  bool recording() const { return recording_ && !in_segment_; }
  void set_recording(bool recording) { recording_ = recording; }

  // Appends a node that produced `y`. `backward` is called once, when the gradient of y is
  // complete; it must add to the gradients of the op's inputs. It may look at the values of those
  // inputs and y that are in `reads` only: others may have been released. `parameters` are those
  // to whose gradients it adds: null entries are skipped.
  template <typename Backward>
  void record(const Var& y, std::initializer_list<Var> reads,
              std::initializer_list<Parameter*> parameters, const Backward& backward) {
    static_assert(
        std::is_trivially_destructible_v<Backward> && std::is_trivially_copyable_v<Backward>,
        "closures live in an arena: capture values, pointers and tensors only");
    if (!recording()) return hold(parameters);
    Backward* stored = new (arena_.allocate<Backward>(1)) Backward(backward);
    append(y, reads, parameters, stored,
           [](void* closure) { (*static_cast<Backward*>(closure))(); });
  }

  // Returns the gradient of y, zero where nothing uses y, to the backward step of the op that
  // produced y.
  Tensor grad_of(const Var& y);
  // Return the gradient of x, which wants one, to the backward step of an op that reads x. That of
  // grad_to() is to be added to, and zero the first time; that of target() says whether it is still
  // to be written. target_in_place() lets x, where it has no gradient yet, take over the memory of
  // y's, which is then fresh and still holds y's; x and y have the same shape.
  Tensor grad_to(const Var& x);
  GradientTarget target(const Var& x);
  GradientTarget target_in_place(const Var& x, const Var& y);

  // Returns the gradient of a parameter, to add to. During backward only. Gradients kept in fp32
  // are the parameter's own; others are allocated here, zeroed, and given up as soon as on_ready
  // returns. `bound` is that of the magnitude of what will be added, where it is known (Parameter):
  // then nobody needs to read all of a large gradient to see that it is finite.
  Tensor gradient(Parameter& parameter, double bound = std::numeric_limits<double>::infinity());

  // Offers the whole gradient of a parameter as a source. It is taken if nothing else adds to it
  // and it is not kept: it is then the parameter's gradient until on_ready has returned. Otherwise
  // this returns false, and the caller must add to gradient(). During backward only.
  bool offer_gradient(Parameter& parameter, const LazyGradient& source);

  // Fills all gradients of `weight` * `loss` (one element), once until reset(), and calls
  // on_ready(parameter) as soon as a parameter's gradient is complete. Without on_ready every used
  // parameter must keep its gradient. A weight below 1 makes the share of one micro-batch.
  template <typename OnReady>
  void backward(const Var& loss, OnReady&& on_ready, float weight = 1.0f) {
    begin_backward(loss, weight);
    for (std::size_t i = nodes_.size(); i-- > 0;) {
      if (nodes_[i].is_segment) {
        i = record_again(i);
        continue;
      }
      nodes_[i].call(nodes_[i].closure);
      for (Parameter* parameter : nodes_[i].parameters) {
        if (parameter == nullptr || --parameter->pending_uses > 0) continue;
        parameter->collect_gradient();
        on_ready(*parameter);
        release_gradient(*parameter);
      }
      recycle(nodes_[i].note->gradient);
      scratch_reset();
    }
  }
  void backward(const Var& loss, float weight = 1.0f);

  // Forgets all nodes and values; keeps the memory for the next step.
  void reset();

  std::size_t node_count() const { return nodes_.size(); }

 private:
  static constexpr std::size_t kMaxParameters = 4;
  struct Node {
    ValueNote* note;  // about the value that it produced
    void* closure;
    void (*call)(void* closure);
    std::array<Parameter*, kMaxParameters> parameters;
    bool is_segment = false;
  };
  // Where the tape's memory is when a segment begins.
  struct Place {
    Arena::Place memory;
    std::size_t first_recycled;
  };

  void append(const Var& y, std::initializer_list<Var> reads,
              std::initializer_list<Parameter*> parameters, void* closure, void (*call)(void*));
  static Tensor take(std::vector<Tensor>& free, std::size_t first, const Shape& shape);
  Tensor recycled_or_new(const Shape& shape);
  Place enter();
  void leave(const Place& before);
  static void copy_result(const Var& result, const Var& y);
  void hold(std::initializer_list<Parameter*> parameters);
  std::size_t record_again(std::size_t segment);
  void begin_again(const Var& x, const Var& y, std::size_t held);
  void hand_down(const Var& y, const Var& result);
  void end_again(Var x, Tensor memory, bool had_gradient, Place before);
  void begin_backward(const Var& loss, float weight);
  // Calls body(parameter) for those of all nodes, recorded or held.
  template <typename Body>
  void for_each_pending(const Body& body) const {
    for (const Node& node : nodes_) {
      for (Parameter* parameter : node.parameters) {
        if (parameter != nullptr) body(*parameter);
      }
    }
    for (Parameter* parameter : held_parameters_) body(*parameter);
  }
  static bool take_gradient(Parameter& parameter);
  void release_gradient(Parameter& parameter);
  // Leaves nothing behind of a step that was abandoned (an error between forward and backward).
  void forget_parameters();
  void recycle(Tensor& gradient);

  Arena arena_;
  Arena gradients_;  // of parameters that do not keep theirs
  Arena workspace_;
  std::vector<Node> nodes_;
  std::vector<Tensor> recycled_;    // memory that is free again, as large as what it held
  std::size_t first_recycled_ = 0;  // of what the present segment gave back; it leaves others alone
  // Those that segments use which have been computed once and are not walked yet: their uses count
  // as pending, as if they were recorded.
  std::vector<Parameter*> held_parameters_;
  std::vector<Tensor> free_gradients_;  // memory of gradients_ that was given up
  int lent_gradients_ = 0;
  bool recording_ = true;
  bool in_segment_ = false;  // which is first computed
  bool walked_ = false;
};

}  // namespace tritgrad
