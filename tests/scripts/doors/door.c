/* Trains through the C interface, and prints the result. Usage: door DATA SPEC, both as JSON (tritgrad.h). */
#include <stdio.h>

#include "tritgrad.h"

int main(int count, char **arguments) {
  if (count != 3) return 2;
  tg_data *data = tg_data_open(arguments[1]);
  tg_run *run = data == NULL ? NULL : tg_run_new(data, arguments[2]);
  const char *result = run == NULL || tg_run_all(run) != TG_OK ? NULL : tg_run_finish(run);
  if (result == NULL) fprintf(stderr, "tritgrad: %s\n", tg_error());
  else printf("%s\n", result);
  tg_run_close(run);
  tg_data_close(data);
  return result == NULL;
}
