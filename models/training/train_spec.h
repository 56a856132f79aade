// The options that decide a training run, in one list that checkpoints, resumed runs, ranks, keys
// of cached runs and the command line go through. An option is added by a member and a line in
// visit().
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "engine/data/dataset.h"
#include "engine/data/split.h"
#include "engine/data/standardizer.h"
#include "engine/data/task_kind.h"
#include "optim/parallel/data_parallel.h"

namespace tritgrad {

// The way in which the loss treats classes of very different sizes.
enum class Imbalance {
  kNone,     // every row counts alike
  kWeights,  // every class counts alike, see class_weights()
};

struct TrainSpec {
  std::string data = "wdbc";
  TaskKind task = TaskKind::kAuto;   // what labels are
  std::string label;                 // label column of a CSV file; empty: the last
  std::string header = "auto";       // of a CSV file
  std::string missing = "refuse";    // what becomes of a table's missing cells
  std::int64_t max_categories = 64;  // of a table's column of words
  std::string columns;               // features of a table, separated by commas; empty: all
  std::string drop;                  // columns of a table that are no features
  std::string words;                 // columns of a table whose numbers are words
  std::string tokens = "bytes";      // what a text is cut into, see open_dataset()
  std::int64_t resize = 0;           // side of the images to learn from; 0: as they are
  std::string model = "mlp:64,64";
  int epochs = 0;                         // 0: by the size of the data, see with_defaults()
  std::int64_t epoch_tokens = 0;          // of a text in an epoch; 0: as many as there are
  std::int64_t batch = 0;                 // 0: by the size of the data
  std::int64_t micro_batches = 1;         // parts of a batch whose gradients are added up
  bool recompute = false;                 // what layers make, in backward, instead of keeping it
  int folds = 0;                          // 0: the fixed test split
  double validation = 0.0;                // share of the training rows
  bool all_rows = false;                  // train on them all, and hold back no test rows
  std::string augment;                    // of training images, see parse_augmentation()
  std::optional<double> label_smoothing;  // see softmax_cross_entropy(); absent: by the data
  Imbalance imbalance = Imbalance::kNone;
  std::optional<PixelScale> pixels;    // what is standardised of a pixel; absent: by the data
  std::vector<std::string> overrides;  // key=value, on the recipe
  std::string recipe = "votes";
  std::uint64_t seed = 1;
  ParallelSpec parallel;

  PixelScale pixel_scale() const { return pixels.value_or(PixelScale::kLinear); }
};

// An ordinary field is kept in checkpoints, and a resumed run, all ranks of a job and a cached run
// have the same. These say what is otherwise.
enum FieldTrait : unsigned {
  kOfData = 1,      // ranks and caches compare the rows that it makes instead; a resumed run, too
  kOfRecipe = 2,    // ranks and caches compare the recipe that it makes instead
  kChangeable = 4,  // a resumed run may have another
  kUnsaved = 8,     // not kept in checkpoints
  kYounger = 16,    // older checkpoints lack it: Field::absent stands for it
  kSingleRun = 32,  // a comparison of many runs sets it itself
  kSparse = 64,     // kYounger, and kept in checkpoints only where it is not the default
  kOfTable = 128,   // for tables alone
};

struct Field {
  const char* key;     // in checkpoints (those of ParallelSpec in an object) and in keys of runs
  const char* option;  // of the command line
  const char* what;    // in messages
  const char* help;
  unsigned traits = 0;
  const char* absent = "";  // what an empty std::optional means
  double low = 0.0;         // bounds of a number, both included; none where they are equal
  double high = 0.0;
};

// These functions visit the fields of data; of training, which are those of its length and of what
// is learned; and of ranks that work together.
template <typename Spec, typename Visitor>
void visit_data(Spec& spec, const Visitor& visitor) {
  visitor(Field{"data", "--data", "data",
                "a name that 'tritgrad data' lists, FILE.csv (also .csv.gz, or - = standard "
                "input), X.npy,Y.npy, FILE.npz, a folder of IDX or of CIFAR-10's files, or "
                "text:FILE, a text, or folder of texts, for a language model",
                kOfData | kChangeable},
          spec.data);
  visitor(
      Field{"task", "--task", "task",
            "classify; regress, to predict labels that are numbers; or auto: regress for labels "
            "of many different numbers [auto]",
            kOfData | kYounger | kSparse},
      spec.task);
  visitor(Field{"label", "--label", "label column",
                "label column of a CSV file: name, or number from 0 (-1 = last) [last]", kOfData},
          spec.label);
  visitor(Field{"header", "--header", "header", "CSV header line: auto, yes or no", kOfData},
          spec.header);
  constexpr unsigned kTable = kOfData | kOfTable | kYounger | kSparse;
  visitor(Field{"missing", "--missing", "way with missing cells",
                "missing cells of a table: refuse; mean, with a feature that says where; mode, the "
                "most frequent value; or drop, their rows",
                kTable},
          spec.missing);
  visitor(Field{"max_categories", "--max-categories", "number of categories",
                "most different words in a column of a table, each of which is a feature [64]",
                kTable, "", 1, 65536},
          spec.max_categories);
  visitor(Field{"columns", "--columns", "choice of columns",
                "NAME,NAME: the columns of a table to learn from [all]", kTable},
          spec.columns);
  visitor(Field{"drop", "--drop", "choice of columns",
                "NAME,NAME: columns of a table not to learn from", kTable},
          spec.drop);
  visitor(Field{"words", "--words", "choice of words",
                "NAME,NAME: columns of a table whose numbers are words, such as codes", kTable},
          spec.words);
  visitor(
      Field{"tokens", "--tokens", "tokens of the text",
            "what a text is cut into: bytes, or sentencepiece:FILE.model, pieces of a vocabulary "
            "[bytes]",
            kOfData | kYounger | kSparse},
      spec.tokens);
  visitor(Field{"resize", "--resize", "size of images",
                "N: images are made smaller first, N x N pixels, each the mean of the area that it "
                "covers [as they are]",
                kOfData | kYounger | kSparse, "", 1, 32768},
          spec.resize);
}

template <typename Spec, typename Visitor>
void visit_length(Spec& spec, const Visitor& visitor) {
  constexpr double kMost = 1e6;
  visitor(Field{"model", "--model", "model",
                "mlp:WIDTH,WIDTH[:norm=batch|layer|rms|none][:activation=relu|squared_relu|"
                "tanh][:dropout=P], or, for images, conv:WIDTH,WIDTH,M,...[:dropout=P]: 3 x 3 "
                "convolutions with batch norm and rectifier, WIDTH/2 with stride 2, M is 2 x 2 max "
                "pooling, R a residual block, FWIDTH a dense layer at the end; or, for text, "
                "llama:LAYERS,WIDTH[:heads=H][:kv=K][:ff=F][:context=T][:tie=yes|no]"},
          spec.model);
  visitor(
      Field{"epochs", "--epochs", "length",
            "passes over the training rows [60; 10 from 10,000 rows]", kChangeable, "", 1, kMost},
      spec.epochs);
  visitor(Field{"epoch_tokens", "--epoch-tokens", "length of an epoch",
                "tokens of a text that count as one epoch [all that are trained on]",
                kYounger | kSparse, "", 1, 1e12},
          spec.epoch_tokens);
  visitor(
      Field{"batch", "--batch", "batch",
            "rows per step, of a text windows [32; 128 from 10,000 rows; of a text 2,048 tokens]",
            0, "", 1, kMost},
      spec.batch);
  visitor(Field{"micro_batches", "--micro-batches", "number of parts",
                "parts of each batch whose gradients are added up, to save activations; batch "
                "norm then sees the parts [1]",
                0, "", 1, kMost},
          spec.micro_batches);
  visitor(Field{"recompute", "--recompute", "choice to recompute",
                "of a language model, keep for backward only what each layer begins with, and "
                "compute the rest again, to save activations: the same numbers, in more time",
                kYounger | kSparse | kChangeable},
          spec.recompute);
  visitor(Field{"folds", "--folds", "number of folds",
                "K-fold cross-validation instead of one test split", kUnsaved, "", 2, 1000},
          spec.folds);
  visitor(Field{"validation", "--val", "share of rows to watch",
                "share of the training rows held out to watch", 0, "", 0.0, 0.9},
          spec.validation);
  visitor(Field{"all_rows", "--all-rows", "choice of training rows",
                "train on all rows: none are held back for a test, and no test score is known",
                kYounger | kSparse | kSingleRun},
          spec.all_rows);
}

template <typename Spec, typename Visitor>
void visit_learning(Spec& spec, const Visitor& visitor) {
  visitor(
      Field{"augment", "--augment", "augmentation",
            "of training images: crop=PIXELS, a random part of the image with so many pixels of 0 "
            "around it (shift=PIXELS is the same); flip; crop=PIXELS,flip; or none [none]",
            kYounger},
      spec.augment);
  visitor(Field{"label_smoothing", "--label-smoothing", "label smoothing",
                "share of the target that is spread over all classes [0; 0.1 for images from "
                "10,000 rows]",
                kYounger, "0", 0.0, 0.9},
          spec.label_smoothing);
  visitor(Field{"imbalance", "--imbalance", "treatment of uneven classes",
                "none, or weights: in the loss every class counts alike, however few its rows "
                "[none]",
                kYounger | kSparse},
          spec.imbalance);
  visitor(Field{"pixels", "--pixels", "scale of pixels",
                "linear, or sqrt: square roots of pixels are standardised instead [sqrt for "
                "grey images of 8 bits a pixel]",
                kYounger, "linear"},
          spec.pixels);
  visitor(Field{"overrides", "--set", "change of the recipe",
                "KEY=VALUE: override the recipe, e.g. weight.lr=0.1", kOfRecipe},
          spec.overrides);
  visitor(Field{"recipe", "--recipe", "recipe", "name (see 'tritgrad recipes') or FILE.toml",
                kOfRecipe | kSingleRun},
          spec.recipe);
  visitor(Field{"seed", "--seed", "seed", "start of weights, order of rows, rounding", kSingleRun},
          spec.seed);
}

template <typename Spec, typename Visitor>
void visit_training(Spec& spec, const Visitor& visitor) {
  visit_length(spec, visitor);
  visit_learning(spec, visitor);
}

template <typename Spec, typename Visitor>
void visit_ranks(Spec& spec, const Visitor& visitor) {
  visitor(Field{"parallel.method", "--dp", "way to work together",
                "train on all processes that mpirun started: allreduce (gradients), votes "
                "(sign votes as integers), apmsqueeze (Adam's momentum in 1 bit) [none]",
                kSingleRun},
          spec.parallel.method);
  visitor(Field{"parallel.majority", "--dp-majority", "way to count votes",
                "votes: move by the majority rather than by the mean vote", kSingleRun},
          spec.parallel.majority);
  visitor(Field{"parallel.warmup", "--dp-warmup", "warm-up",
                "apmsqueeze: share of the steps in full precision, or auto: until the second "
                "moment is stable [0.2]",
                kSingleRun, "auto"},
          spec.parallel.warmup);
  visitor(Field{"parallel.rms", "--dp-scale", "scale of signs",
                "apmsqueeze: scale of signs, mean or rms [mean]", kSingleRun},
          spec.parallel.squeeze);
}

// Calls visitor(field, member) for every field, in the order of the command line's help.
template <typename Spec, typename Visitor>
void visit(Spec& spec, const Visitor& visitor) {
  visit_data(spec, visitor);
  visit_training(spec, visitor);
  visit_ranks(spec, visitor);
}

// A field as the command line has it: "0.1", "sqrt", "auto".
struct FieldText {
  Field field;
  std::string text;
};
std::vector<FieldText> field_texts(const TrainSpec& spec);

// The texts are "none" and "weights"; parsing throws Error for others.
std::string_view to_text(Imbalance imbalance);
Imbalance parse_imbalance(std::string_view text);

// Reads what field_texts() writes. Throws Error that names the option.
void parse_field(const Field& field, const std::string& text, std::optional<double>& value);
void parse_field(const Field& field, const std::string& text, std::optional<PixelScale>& value);
void parse_field(const Field& field, const std::string& text, TaskKind& value);
void parse_field(const Field& field, const std::string& text, Imbalance& value);
void parse_field(const Field& field, const std::string& text, ParallelMethod& value);
void parse_field(const Field& field, const std::string& text, WireCode& value);

// Returns the spec with defaults for the fields that were left open: 60 epochs of batches of 32
// below 10,000 rows; 10 epochs of batches of 128 from there on, with the labels of images smoothed
// by 0.1; square roots of pixels where images are grey and have 8 bits a pixel. Texts have 10
// epochs below 10,000 windows and 1 from there on, and batches of about 2,048 tokens.
TrainSpec with_defaults(TrainSpec spec, const Dataset& dataset);

// Returns the rows that a run trains on, watches and tests on; `fold` counts from 0 where
// spec.folds > 0.
Split split_of(const Dataset& dataset, const TrainSpec& spec, int fold);

// Describes a data set: "wdbc: 569 rows, 30 features, 2 classes; a fixed, stratified test split of
// 20 %"; of a user's table also its classes with their rows, and its columns.
std::string dataset_line(const Dataset& dataset, const TrainSpec& spec);

}  // namespace tritgrad
