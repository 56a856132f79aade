/* Feeds rows to an exported network and prints the bits of their logits and the class, a line for each row. On a
   microcontroller it is a whole image without a library, and then prints how long a prediction takes and the most
   bytes of stack that were in use; elsewhere it is an ordinary program.

   MODEL is the header, NAME and PREFIX the beginnings of its functions and constants; rows.h defines ROWS and
   rows[ROWS][inputs], which are IN_ROWS. */
#include <stdint.h>
#include <string.h>

#include MODEL

#define JOIN_(a, b) a##b
#define JOIN(a, b) JOIN_(a, b)
#define OF_MODEL(name) JOIN(NAME, name)
#define CONSTANT(name) JOIN(PREFIX, name)

#if defined(__arm__)
#include "cortex_m4.h"
#elif defined(__AVR__)
#include "avr.h"
#else
#include <stdio.h>
#define IN_ROWS
static void print(const char *text) { fputs(text, stdout); }
#endif

#include "rows.h"

static OF_MODEL(_workspace) workspace;

static void print_hex(uint32_t bits) {
  char text[10];
  int i;
  for (i = 0; i < 8; i++) text[i] = "0123456789abcdef"[bits >> (28 - 4 * i) & 15u];
  text[8] = ' ';
  text[9] = 0;
  print(text);
}

static void print_number(const char *name, uint32_t value) {
  char text[12];
  int at = 11;
  text[at] = 0;
  do text[--at] = (char)('0' + value % 10);
  while ((value /= 10) > 0);
  print(name);
  print(text + at);
  print("\n");
}

static void features_of(int row, float *features) {
  int i;
  for (i = 0; i < CONSTANT(_INPUTS); i++) features[i] = (float)rows[row][i];
}

int main(void) {
  static float features[CONSTANT(_INPUTS)], logits[CONSTANT(_CLASSES)];
  int row, i;
  for (row = 0; row < ROWS; row++) {
    features_of(row, features);
    OF_MODEL(_logits)(features, logits, &workspace);
    for (i = 0; i < CONSTANT(_CLASSES); i++) {
      uint32_t bits;
      memcpy(&bits, &logits[i], sizeof(bits));
      print_hex(bits);
    }
    print_number("class ", (uint32_t)OF_MODEL(_predict)(features, &workspace));
  }
#ifdef CLOCK
  {
    volatile int number;
    features_of(0, features);
    start_clock();
    number = OF_MODEL(_predict)(features, &workspace);
    print_number(CLOCK " ", ticks_of_clock());
    (void)number;
    print_number("stack ", stack_bytes());
    end();
  }
#endif
  return 0;
}
