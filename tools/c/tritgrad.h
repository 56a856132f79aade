/* tritgrad for C and for every language that calls C.
 *
 *   tg_data *data = tg_data_from_arrays(x, TG_FLOAT32, rows, features, labels, TG_INT64, NULL);
 *   tg_run *run = tg_run_new(data, "{\"model\": \"mlp:64,64\", \"recipe\": \"latent8\"}");
 *   tg_run_all(run);
 *   tg_run_save(run, "m.safetensors");
 *   tg_model *model = tg_model_open("m.safetensors");
 *   tg_model_predict(model, x, TG_FLOAT32, rows, features, classes, NULL, NULL);
 *
 * Errors. A function that makes something returns NULL where it cannot, every other one that can
 * fail returns a tg_status, which tg_error_status() tells of both. tg_error() then is the sentence
 * that says what was found, what was expected and what to do. Nothing throws, prints or ends the
 * program. Closing NULL does nothing.
 *
 * Threads. Handles are independent of each other; a handle is for one thread at a time. tg_error()
 * and tg_error_status() are of the calling thread.
 *
 * Texts are UTF-8 that ends in a zero byte. Those that a function returns live as long as the
 * handle, and until the same function is called again with it. */
#ifndef TRITGRAD_H
#define TRITGRAD_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define TG_API __attribute__((visibility("default")))
#else
#define TG_API
#endif

/* Grows where a function changes its meaning; compare it with tg_abi_version(). */
#define TG_ABI_VERSION 1

typedef enum {
  TG_OK = 0,
  TG_INVALID = 1,     /* an argument, data, a spec or a file that does not fit */
  TG_INTERRUPTED = 2, /* the observer ended the run; it may go on */
  TG_DIVERGED = 3,    /* a loss, a gradient or a weight is no longer finite */
  TG_MEMORY = 4,      /* there is not enough of it */
  TG_NOT_FOUND = 5    /* a file, a folder or a data set of that name is not there */
} tg_status;

/* Of numbers; the last two are of labels alone. */
typedef enum { TG_FLOAT32 = 0, TG_FLOAT64 = 1, TG_UINT8 = 2, TG_INT32 = 3, TG_INT64 = 4 } tg_type;

typedef struct tg_data tg_data;   /* a data set */
typedef struct tg_run tg_run;     /* a training run */
typedef struct tg_model tg_model; /* a trained model */

TG_API int tg_abi_version(void);
TG_API const char *tg_version(void); /* "0.1.0" */
/* The sentence of the last failure in this thread, without control characters; "" if there was
 * none. Long names and values are told in part, and a sentence has at most 1000 bytes. */
TG_API const char *tg_error(void);
/* What kind of failure that was; TG_OK if there was none. */
TG_API tg_status tg_error_status(void);
/* Threads that a step uses from now on; 0: all cores. Results do not depend on it. */
TG_API tg_status tg_set_threads(int threads);
/* The built-in recipes: a JSON array of {"name", "about", "source", "format", "rule", "compute",
 * "bytes_per_parameter": {"weights", ..., "total"}}. Format and rule are those of the weights. */
TG_API const char *tg_recipes(void);

/* Takes `rows` rows of `features` finite numbers, row by row, as the command line reads them from
 * .npy files. They are copied; with {"borrow": true} they stay the caller's and must outlive the
 * data unchanged, where they need no conversion: TG_UINT8 and aligned TG_FLOAT32. Others are copied
 * all the same, and tg_data_describe() tells "borrowed": false. `labels` are `rows` whole numbers
 * that name classes, TG_INT64, TG_INT32 or TG_UINT8, and always copied. `options` is NULL or JSON:
 * {"name": "digits", "class_names": ["no", "yes"], "image": [height, width, channels],
 * "borrow": true}. With class names labels count them from 0, and rows of all classes must be
 * there; without, a class is called by its number. Pixels of images lie by rows, columns and
 * channels. */
TG_API tg_data *tg_data_from_arrays(const void *values, tg_type type, int64_t rows,
                                    int64_t features, const void *labels, tg_type label_type,
                                    const char *options);
/* Takes rows whose targets, finite numbers, are to be predicted: for regression. The rest is as of
 * tg_data_from_arrays(); there are no class names. */
TG_API tg_data *tg_data_from_targets(const void *values, tg_type type, int64_t rows,
                                     int64_t features, const double *targets, const char *options);
/* Reads data as the command line does. `spec` is JSON with keys of its options: {"data":
 * "table.csv", "label": "kind", "missing": "mean"}. */
TG_API tg_data *tg_data_open(const char *spec);
/* JSON: {"name", "task": "classify", "regress" or "language", "rows", "features",
 * "classes": [names], "feature_names", "borrowed", "remarks": [sentences]}. */
TG_API const char *tg_data_describe(tg_data *data);
TG_API void tg_data_close(tg_data *data);

/* What a run tells its observer after each step. Other values than 0 end the run: tg_run_step() and
 * its like return TG_INTERRUPTED, and may be called again to go on. */
typedef struct {
  int64_t step, total_steps; /* steps made, and of the whole run */
  int64_t epoch;             /* that the step belongs to, from 1 */
  double loss;               /* mean over the epoch so far */
} tg_progress;
typedef int (*tg_observer)(const tg_progress *progress, void *context);

/* Prepares a run; `data` must outlive it. `spec` is JSON with keys of the command line's options:
 * {"model": "mlp:64,64", "recipe": "votes", "epochs": 10, "batch": 32, "seed": 1, "lr": 0.01,
 * "set": ["weight.group=64"], "val": 0.1, "all_rows": true, ...}. Without "all_rows" the test rows
 * of the command line's fixed split are held back. "resume" and "save" name checkpoints. */
TG_API tg_run *tg_run_new(const tg_data *data, const char *spec);
TG_API tg_status tg_run_observe(tg_run *run, tg_observer observer, void *context);
/* Makes a step, the rest of an epoch, or all steps that are left; nothing when all are made. */
TG_API tg_status tg_run_step(tg_run *run);
TG_API tg_status tg_run_epoch(tg_run *run);
TG_API tg_status tg_run_all(tg_run *run);
/* 1 when all steps are made. */
TG_API int tg_run_is_over(const tg_run *run);
/* Writes a checkpoint, which replaces other checkpoints alone. */
TG_API tg_status tg_run_save(tg_run *run, const char *path);
/* The model as the run has it now, with all that a checkpoint holds; no file is made. It needs the
 * run no more. */
TG_API tg_model *tg_run_model(tg_run *run);
/* Ends the run and returns its result as the command line's --json does; NULL where it fails. */
TG_API const char *tg_run_finish(tg_run *run);
TG_API void tg_run_close(tg_run *run);

/* Reads a checkpoint from a file, or from the bytes of one, which are copied. */
TG_API tg_model *tg_model_open(const char *path);
TG_API tg_model *tg_model_from_bytes(const void *bytes, size_t size);
/* The bytes of its checkpoint, `size` of them, which live as long as the model: those of the file
 * where it was opened from one. */
TG_API const void *tg_model_bytes(tg_model *model, size_t *size);
/* JSON: {"model", "recipe", "task": "classify", "regress" or "language", "inputs",
 * "classes": [names], "feature_names", "steps", "parameters", "bytes_per_parameter": {"weights",
 * ..., "total"}, "checkpoint_bytes", "weights_sha256"}, and "image": [height, width, channels]
 * where rows are images. */
TG_API const char *tg_model_describe(tg_model *model);
/* What `tritgrad inspect FILE --json -` tells: bytes by tensor and by category, those of training
 * included. `options` is NULL or JSON such as {"export": "h", "trits": "2bit"}: then "export" has
 * the bytes of such an export. */
TG_API const char *tg_model_inspect(tg_model *model, const char *options);
/* For each row its class, the probabilities of the classes [rows x classes], and outputs: logits
 * [rows x classes], or of a regression, which has no classes, its prediction in the units of the
 * targets [rows]. What is NULL is not written. A row's numbers do not depend on the other rows.
 * Nothing is written where an output is not finite: TG_INVALID, with the row. */
TG_API tg_status tg_model_predict(tg_model *model, const void *values, tg_type type, int64_t rows,
                                  int64_t features, int64_t *classes, float *probabilities,
                                  double *outputs);
/* Copies rows by which exports of the model are checked from now on, with their classes as
 * tg_model_predict() numbers them, or the targets of a regression. Without either, both NULL, the
 * score of the export is null. */
TG_API tg_status tg_model_check_rows(tg_model *model, const void *values, tg_type type,
                                     int64_t rows, int64_t features, const int64_t *classes,
                                     const double *targets);
/* Writes the model for other programs, by the ending of `path`: .h, .onnx, .js, .html, .npz or
 * .safetensors. The bytes, and the JSON that it returns, are those of `tritgrad export MODEL --to
 * path --json -`. The file is compared with the model first; where they differ nothing is written.
 * The rows are those of the data that `options` name; else those of tg_model_check_rows(); else, of
 * a model that tg_run_model() made of arrays, at most 1000 of the test rows of the run (without
 * these, of its validation or training rows: the file says which); else those of the data that the
 * model was trained on, which are read again. `options` is NULL or JSON with keys of the command
 * line's options:
 * {"trits": "2bit", "onnx_ops": "standard", "raw_inputs": true, "data": "table.csv"}. */
TG_API const char *tg_model_export(tg_model *model, const char *path, const char *options);
/* A language model writes on behind a prompt of `size` bytes of text. `writer` is given the bytes
 * of each token as it is drawn, which may be a part of a character, and ends the text by another
 * value than 0: TG_OK. `options` is NULL or JSON with keys of `tritgrad generate`: {"length": 256,
 * "temperature": 0.8, "top_k": 0, "top_p": 1, "seed": 1}; the same options give the same bytes. */
typedef int (*tg_writer)(const char *bytes, size_t size, void *context);
TG_API tg_status tg_model_generate(tg_model *model, const char *prompt, size_t size,
                                   const char *options, tg_writer writer, void *context);
TG_API void tg_model_close(tg_model *model);

/* Trains recipes x seeds on the same rows and returns the JSON of `tritgrad compare --json`, which
 * lives until the next call in this thread. `spec` is JSON with keys of the command's options:
 * {"model": "mlp:64,64", "recipes": ["master", "votes"], "seeds": 3, "tune": 3, "baseline":
 * "master", "epochs": 10, ...}; ["all"] are all recipes. The observer, NULL or called after each
 * step and each run, is told runs in tg_progress.step and total_steps, and may end the comparison.
 * Finished runs are kept nowhere, unless "cache" names a folder. */
TG_API const char *tg_compare(const tg_data *data, const char *spec, tg_observer observer,
                              void *context);

#ifdef __cplusplus
}
#endif

#endif /* TRITGRAD_H */
