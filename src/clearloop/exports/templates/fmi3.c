/* The functions of FMI 3.0 for co-simulation. */

#include <stdint.h>

#ifdef FMI3_FUNCTION_PREFIX
#define JOINED_TEXT(a, b) a##b
#define JOINED(a, b) JOINED_TEXT(a, b)
#define F(name) JOINED(FMI3_FUNCTION_PREFIX, name)
#else
#define F(name) name
#endif

typedef unsigned int Ref;

EXPORT const char *F(fmi3GetVersion)(void) { return "3.0"; }

EXPORT void *F(fmi3InstantiateCoSimulation)(const char *name, const char *token, const char *resources, bool visible,
    bool logging, bool events, bool early, const Ref *required, size_t n, void *environment,
    void (*log)(void), void (*update)(void))
{
    (void)name; (void)resources; (void)visible; (void)logging; (void)events; (void)early;
    (void)required; (void)n; (void)environment; (void)log; (void)update;
    return make_instance(token);
}

EXPORT void *F(fmi3InstantiateModelExchange)(const char *name, const char *token, const char *resources,
    bool visible, bool logging, void *environment, void (*log)(void))
{
    (void)name; (void)token; (void)resources; (void)visible; (void)logging; (void)environment; (void)log;
    return NULL;
}

EXPORT void *F(fmi3InstantiateScheduledExecution)(const char *name, const char *token, const char *resources,
    bool visible, bool logging, void *environment, void (*log)(void), void (*update)(void),
    void (*lock)(void), void (*unlock)(void))
{
    (void)name; (void)token; (void)resources; (void)visible; (void)logging; (void)environment; (void)log;
    (void)update; (void)lock; (void)unlock;
    return NULL;
}

EXPORT void F(fmi3FreeInstance)(Instance *c) { free(c); }

EXPORT int F(fmi3EnterInitializationMode)(Instance *c, bool bounded, double tolerance, double start, bool ends,
    double end)
{
    (void)bounded; (void)tolerance; (void)ends; (void)end;
    start_at(c, start);
    return OK;
}

EXPORT int F(fmi3Reset)(Instance *c) { begin(c); return OK; }

EXPORT int F(fmi3DoStep)(Instance *c, double time, double step, bool final, bool *events, bool *ends, bool *early,
    double *reached)
{
    const int status = advance(c, time, step);
    (void)final;
    *events = *ends = *early = false;
    *reached = c->time;
    return status;
}

EXPORT int F(fmi3GetFloat64)(Instance *c, const Ref *refs, size_t n, double *values, size_t m)
{
    return n == m ? get_reals(c, refs, n, values) : FAILED;
}

EXPORT int F(fmi3SetFloat64)(Instance *c, const Ref *refs, size_t n, const double *values, size_t m)
{
    return n == m ? set_reals(c, refs, n, values) : FAILED;
}

EXPORT int F(fmi3GetInt32)(Instance *c, const Ref *refs, size_t n, int32_t *values, size_t m)
{
    preview(c);
    for (size_t k = 0; k < n; k++) {
        const unsigned int *place = n == m ? count_at(c, refs[k]) : NULL;
        if (place == NULL) { return FAILED; }
        values[k] = (int32_t)*place;
    }
    return OK;
}

EXPORT int F(fmi3GetBoolean)(Instance *c, const Ref *refs, size_t n, bool *values, size_t m)
{
    for (size_t k = 0; k < n; k++) {
        const bool *place = n == m ? flag_at(c, refs[k]) : NULL;
        if (place == NULL) { return FAILED; }
        values[k] = *place;
    }
    return OK;
}

EXPORT int F(fmi3SetBoolean)(Instance *c, const Ref *refs, size_t n, const bool *values, size_t m)
{
    for (size_t k = 0; k < n; k++) {
        bool *place = n == m ? flag_at(c, refs[k]) : NULL;
        if (place == NULL) { return FAILED; }
        *place = values[k];
    }
    return OK;
}

REFUSED(F(fmi3SetInt32), (Instance *c, const Ref *refs, size_t n, const int32_t *values, size_t m))

EXPORT int F(fmi3GetFMUState)(Instance *c, void **state) { return copy_state(c, state); }
EXPORT int F(fmi3SetFMUState)(Instance *c, const void *state) { return copy_bytes(c, state, sizeof *c); }
EXPORT int F(fmi3FreeFMUState)(Instance *c, void **state) { (void)c; return free_state(state); }
EXPORT int F(fmi3SerializedFMUStateSize)(Instance *c, void *state, size_t *size)
{
    (void)state;
    *size = sizeof *c;
    return OK;
}
EXPORT int F(fmi3SerializeFMUState)(Instance *c, void *state, uint8_t *bytes, size_t size)
{
    (void)c;
    return copy_bytes(bytes, state, size);
}
EXPORT int F(fmi3DeserializeFMUState)(Instance *c, const uint8_t *bytes, size_t size, void **state)
{
    return size == sizeof *c && copy_state(c, state) == OK ? copy_bytes(*state, bytes, size) : FAILED;
}

IDLE(F(fmi3SetDebugLogging), (Instance *c, bool on, size_t n, const char *const *categories))
IDLE(F(fmi3ExitInitializationMode), (Instance *c))
IDLE(F(fmi3EnterStepMode), (Instance *c))
IDLE(F(fmi3Terminate), (Instance *c))
REFUSED(F(fmi3EnterEventMode), (Instance *c))
REFUSED(F(fmi3EnterConfigurationMode), (Instance *c))
REFUSED(F(fmi3ExitConfigurationMode), (Instance *c))

#define REFUSED_KIND(kind, type) \
    REFUSED(F(fmi3Get##kind), (Instance *c, const Ref *refs, size_t n, type *values, size_t m)) \
    REFUSED(F(fmi3Set##kind), (Instance *c, const Ref *refs, size_t n, const type *values, size_t m))
REFUSED_KIND(Float32, float)
REFUSED_KIND(Int8, int8_t)
REFUSED_KIND(UInt8, uint8_t)
REFUSED_KIND(Int16, int16_t)
REFUSED_KIND(UInt16, uint16_t)
REFUSED_KIND(UInt32, uint32_t)
REFUSED_KIND(Int64, int64_t)
REFUSED_KIND(UInt64, uint64_t)
REFUSED_KIND(String, char *)
REFUSED(F(fmi3GetBinary), (Instance *c, const Ref *refs, size_t n, size_t *sizes, const uint8_t **values, size_t m))
REFUSED(F(fmi3SetBinary), (Instance *c, const Ref *refs, size_t n, const size_t *sizes, const uint8_t *const *values,
    size_t m))
REFUSED(F(fmi3GetClock), (Instance *c, const Ref *refs, size_t n, bool *values))
REFUSED(F(fmi3SetClock), (Instance *c, const Ref *refs, size_t n, const bool *values))
REFUSED(F(fmi3GetNumberOfVariableDependencies), (Instance *c, Ref reference, size_t *n))
REFUSED(F(fmi3GetVariableDependencies), (Instance *c, Ref dependent, size_t *elements, Ref *independents,
    size_t *others, int *kinds, size_t n))
REFUSED(F(fmi3GetDirectionalDerivative), (Instance *c, const Ref *unknowns, size_t n, const Ref *knowns, size_t m,
    const double *seed, size_t seeds, double *values, size_t count))
REFUSED(F(fmi3GetAdjointDerivative), (Instance *c, const Ref *unknowns, size_t n, const Ref *knowns, size_t m,
    const double *seed, size_t seeds, double *values, size_t count))
REFUSED(F(fmi3GetOutputDerivatives), (Instance *c, const Ref *refs, size_t n, const int32_t *orders, double *values,
    size_t m))
REFUSED(F(fmi3GetIntervalDecimal), (Instance *c, const Ref *refs, size_t n, double *intervals, int *qualifiers))
REFUSED(F(fmi3GetIntervalFraction), (Instance *c, const Ref *refs, size_t n, uint64_t *counters,
    uint64_t *resolutions, int *qualifiers))
REFUSED(F(fmi3GetShiftDecimal), (Instance *c, const Ref *refs, size_t n, double *shifts))
REFUSED(F(fmi3GetShiftFraction), (Instance *c, const Ref *refs, size_t n, uint64_t *counters, uint64_t *resolutions))
REFUSED(F(fmi3SetIntervalDecimal), (Instance *c, const Ref *refs, size_t n, const double *intervals))
REFUSED(F(fmi3SetIntervalFraction), (Instance *c, const Ref *refs, size_t n, const uint64_t *counters,
    const uint64_t *resolutions))
REFUSED(F(fmi3SetShiftDecimal), (Instance *c, const Ref *refs, size_t n, const double *shifts))
REFUSED(F(fmi3SetShiftFraction), (Instance *c, const Ref *refs, size_t n, const uint64_t *counters,
    const uint64_t *resolutions))
REFUSED(F(fmi3EvaluateDiscreteStates), (Instance *c))
REFUSED(F(fmi3UpdateDiscreteStates), (Instance *c, bool *again, bool *ends, bool *nominals, bool *values, bool *defined,
    double *next))
REFUSED(F(fmi3EnterContinuousTimeMode), (Instance *c))
REFUSED(F(fmi3CompletedIntegratorStep), (Instance *c, bool final, bool *events, bool *ends))
REFUSED(F(fmi3SetTime), (Instance *c, double time))
REFUSED(F(fmi3SetContinuousStates), (Instance *c, const double *states, size_t n))
REFUSED(F(fmi3GetContinuousStateDerivatives), (Instance *c, double *values, size_t n))
REFUSED(F(fmi3GetEventIndicators), (Instance *c, double *values, size_t n))
REFUSED(F(fmi3GetContinuousStates), (Instance *c, double *values, size_t n))
REFUSED(F(fmi3GetNominalsOfContinuousStates), (Instance *c, double *values, size_t n))
REFUSED(F(fmi3GetNumberOfEventIndicators), (Instance *c, size_t *n))
REFUSED(F(fmi3GetNumberOfContinuousStates), (Instance *c, size_t *n))
REFUSED(F(fmi3ActivateModelPartition), (Instance *c, Ref clock, double time))
