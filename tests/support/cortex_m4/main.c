/* Feeds rows to an exported network and prints the bits of their logits, a line for each row. On a Cortex-M4
   (qemu's board mps2-an386) it is a whole image without a library, and then prints the instructions of a
   prediction and the most bytes of stack that were in use; elsewhere it is an ordinary program, whose lines
   must be the same.

   MODEL is the header, NAME and PREFIX the beginnings of its functions and constants; rows.h defines ROWS and
   rows[ROWS][inputs], of class ROW_TYPE. */
#include <stdint.h>
#include <string.h>

#include MODEL

#define JOIN_(a, b) a##b
#define JOIN(a, b) JOIN_(a, b)
#define OF_MODEL(name) JOIN(NAME, name)
#define CONSTANT(name) JOIN(PREFIX, name)

#ifdef __arm__
#define IN_ROWS __attribute__((section(".rows")))
#else
#define IN_ROWS
#endif

#include "rows.h"

static OF_MODEL(_workspace) workspace;

#ifdef __arm__

extern uint32_t stack_top[], watched_begin[], watched_end[], data_begin[], data_end[], data_in_flash[], bss_begin[], bss_end[];

static void call_host(uint32_t operation, const void *argument) {
  register uint32_t r0 __asm__("r0") = operation;
  register const void *r1 __asm__("r1") = argument;
  __asm__ volatile("bkpt 0xAB" : "+r"(r0) : "r"(r1) : "memory");
}

static void print(const char *text) { call_host(0x04, text); }

/* With qemu's -icount shift=0 an instruction takes a nanosecond, and SysTick counts down every 40 of them. */
#define NANOSECONDS_PER_TICK 40u
static volatile uint32_t *const systick = (volatile uint32_t *)0xE000E010;

static void start_clock(void) {
  systick[1] = 0x00FFFFFF;
  systick[2] = 0;
  systick[0] = 5;
}

static uint32_t nanoseconds(void) { return (0x00FFFFFFu - systick[2]) * NANOSECONDS_PER_TICK; }

#define UNTOUCHED 0xA5A5A5A5u

static uint32_t stack_bytes(void) {
  const uint32_t *word = watched_begin;
  while (*word == UNTOUCHED) word++;
  return (uint32_t)((const char *)stack_top - (const char *)word);
}

#else

#include <stdio.h>

static void print(const char *text) { fputs(text, stdout); }

#endif

static void print_hex(uint32_t bits) {
  char text[10];
  int i;
  for (i = 0; i < 8; i++) text[i] = "0123456789abcdef"[bits >> (28 - 4 * i) & 15u];
  text[8] = ' ';
  text[9] = 0;
  print(text);
}

#ifdef __arm__
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
#endif

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
    print("\n");
  }
#ifdef __arm__
  {
    volatile int number;
    features_of(0, features);
    start_clock();
    number = OF_MODEL(_predict)(features, &workspace);
    print_number("instructions ", nanoseconds());
    (void)number;
    print_number("stack ", stack_bytes());
  }
#endif
  return 0;
}

#ifdef __arm__

void reset(void) {
  uint32_t *word, *from = data_in_flash;
  *(volatile uint32_t *)0xE000ED88 |= 0xFu << 20; /* the floating-point unit is switched on */
  for (word = data_begin; word < data_end;) *word++ = *from++;
  for (word = bss_begin; word < bss_end;) *word++ = 0;
  for (word = watched_begin; word < watched_end;) *word++ = UNTOUCHED;
  main();
  call_host(0x18, (const void *)0x20026); /* the program has ended well */
  for (;;) {
  }
}

static void fault(void) {
  print("fault\n");
  call_host(0x18, (const void *)0x20023);
  for (;;) {
  }
}

union vector {
  uint32_t *stack;
  void (*handler)(void);
};
__attribute__((section(".vectors"), used)) static const union vector vectors[] = {
    {.stack = stack_top}, {.handler = reset}, {.handler = fault}, {.handler = fault},
    {.handler = fault},   {.handler = fault}, {.handler = fault},
};

#endif
