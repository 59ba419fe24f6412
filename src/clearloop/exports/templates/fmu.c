/*
 * @TITLE@ as an FMU for co-simulation: the part that both versions of FMI share.
 *
 * One instance holds the inputs, the memory and the outputs of the controller in @NAME@.c. A call of doStep
 * computes a control step for every sampling instant in [time, time + step); inputs do not change within it.
 */
#include "@NAME@.h"

#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#if defined(_WIN32)
#define EXPORT __declspec(dllexport)
#elif defined(__GNUC__)
#define EXPORT __attribute__((visibility("default")))
#else
#define EXPORT
#endif

enum { OK = 0, FAILED = 3 };

static const double sample_time = @SAMPLE_TIME@; /* seconds; 0: every call of doStep is a sampling instant */

typedef struct {
    @NAME@_input input;
    @NAME@_memory memory;
    @NAME@_output output;
    double due;    /* the next sampling instant */
    double time;   /* the end of the latest call of doStep */
    int stepped;   /* 0 until the first control step */
} Instance;

/* The places of the variables, by their value references. */
static double *real_at(Instance *c, unsigned int reference)
{
    switch (reference) {
@REALS@
    default: return NULL;
    }
}

static bool *flag_at(Instance *c, unsigned int reference)
{
    switch (reference) {
@FLAGS@
    default: (void)c; return NULL;
    }
}

static unsigned int *count_at(Instance *c, unsigned int reference)
{
    switch (reference) {
@COUNTS@
    default: (void)c; return NULL;
    }
}

static int may_be_set(unsigned int reference)
{
    switch (reference) {
@SETTABLE@
    default: return 0;
    }
}

static void begin(Instance *c)
{
    memset(c, 0, sizeof *c);
    @NAME@_init(&c->memory);
@STARTS@
}

static void start_at(Instance *c, double time)
{
    c->due = c->time = time;
}

/* Before the first control step the outputs are what it would give now; the memory does not change. */
static void preview(Instance *c)
{
    Instance *copy = c->stepped ? NULL : malloc(sizeof *copy);
    if (copy != NULL) {
        *copy = *c;
        @NAME@_step(&copy->memory, &copy->input, &copy->output);
        c->output = copy->output;
        free(copy);
    }
}

static int advance(Instance *c, double time, double step)
{
    const double slack = 1e-6*sample_time; /* the sum of many steps is not exact */
    if (!(fabs(time) <= 1e300) || !(step >= 0.0 && step <= 1e300)) { return FAILED; }
    if (fabs(c->due - time) <= slack || !(sample_time > 0.0)) { c->due = time; }
    while (c->due < time + step - slack) {
        @NAME@_step(&c->memory, &c->input, &c->output);
        c->stepped = 1;
        if (!(sample_time > 0.0) || c->due + sample_time <= c->due) { break; }
        c->due += sample_time;
    }
    c->time = time + step;
    return OK;
}

static int get_reals(Instance *c, const unsigned int *references, size_t count, double *values)
{
    preview(c);
    for (size_t k = 0; k < count; k++) {
        const double *place = real_at(c, references[k]);
        if (place == NULL) { return FAILED; }
        values[k] = *place;
    }
    return OK;
}

static int set_reals(Instance *c, const unsigned int *references, size_t count, const double *values)
{
    for (size_t k = 0; k < count; k++) {
        double *place = real_at(c, references[k]);
        if (place == NULL || !may_be_set(references[k])) { return FAILED; }
        *place = values[k];
    }
    return OK;
}

static int copy_state(Instance *c, void **state)
{
    if (*state == NULL) { *state = malloc(sizeof *c); }
    if (*state == NULL) { return FAILED; }
    memcpy(*state, c, sizeof *c);
    return OK;
}

static int free_state(void **state)
{
    if (state != NULL) {
        free(*state);
        *state = NULL;
    }
    return OK;
}

static int copy_bytes(void *to, const void *from, size_t size)
{
    if (to == NULL || from == NULL || size < sizeof(Instance)) { return FAILED; }
    memcpy(to, from, sizeof(Instance));
    return OK;
}

static Instance *make_instance(const char *token)
{
    Instance *c = token != NULL && strcmp(token, "@TOKEN@") == 0 ? malloc(sizeof *c) : NULL;
    if (c != NULL) { begin(c); }
    return c;
}

/* A function that the standard asks for and that a controller has no use for. */
#define REFUSED(name, arguments) EXPORT int name arguments { return FAILED; }
/* A function that has nothing to do. */
#define IDLE(name, arguments) EXPORT int name arguments { return OK; }

