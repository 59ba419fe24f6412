/* The functions of FMI 2.0 for co-simulation. */

#ifdef FMI2_FUNCTION_PREFIX
#define JOINED_TEXT(a, b) a##b
#define JOINED(a, b) JOINED_TEXT(a, b)
#define F(name) JOINED(FMI2_FUNCTION_PREFIX, name)
#else
#define F(name) name
#endif

typedef unsigned int Ref;

EXPORT const char *F(fmi2GetTypesPlatform)(void) { return "default"; }
EXPORT const char *F(fmi2GetVersion)(void) { return "2.0"; }

EXPORT void *F(fmi2Instantiate)(const char *name, int kind, const char *token, const char *resources,
    const void *functions, int visible, int logging)
{
    (void)name; (void)resources; (void)functions; (void)visible; (void)logging;
    return kind == 1 ? make_instance(token) : NULL; /* 1: co-simulation */
}

EXPORT void F(fmi2FreeInstance)(Instance *c) { free(c); }

EXPORT int F(fmi2SetupExperiment)(Instance *c, int bounded, double tolerance, double start, int ends, double end)
{
    (void)bounded; (void)tolerance; (void)ends; (void)end;
    start_at(c, start);
    return OK;
}

EXPORT int F(fmi2Reset)(Instance *c) { begin(c); return OK; }

EXPORT int F(fmi2DoStep)(Instance *c, double time, double step, int final)
{
    (void)final;
    return advance(c, time, step);
}

EXPORT int F(fmi2GetReal)(Instance *c, const Ref *refs, size_t n, double *values)
{
    return get_reals(c, refs, n, values);
}

EXPORT int F(fmi2SetReal)(Instance *c, const Ref *refs, size_t n, const double *values)
{
    return set_reals(c, refs, n, values);
}

EXPORT int F(fmi2GetInteger)(Instance *c, const Ref *refs, size_t n, int *values)
{
    preview(c);
    for (size_t k = 0; k < n; k++) {
        const unsigned int *place = count_at(c, refs[k]);
        if (place == NULL) { return FAILED; }
        values[k] = (int)*place;
    }
    return OK;
}

EXPORT int F(fmi2GetBoolean)(Instance *c, const Ref *refs, size_t n, int *values)
{
    for (size_t k = 0; k < n; k++) {
        const bool *place = flag_at(c, refs[k]);
        if (place == NULL) { return FAILED; }
        values[k] = *place ? 1 : 0;
    }
    return OK;
}

EXPORT int F(fmi2SetBoolean)(Instance *c, const Ref *refs, size_t n, const int *values)
{
    for (size_t k = 0; k < n; k++) {
        bool *place = flag_at(c, refs[k]);
        if (place == NULL) { return FAILED; }
        *place = values[k] != 0;
    }
    return OK;
}

REFUSED(F(fmi2SetInteger), (Instance *c, const Ref *refs, size_t n, const int *values))
EXPORT int F(fmi2GetFMUstate)(Instance *c, void **state) { return copy_state(c, state); }
EXPORT int F(fmi2SetFMUstate)(Instance *c, const void *state) { return copy_bytes(c, state, sizeof *c); }
EXPORT int F(fmi2SerializedFMUstateSize)(Instance *c, void *state, size_t *size)
{
    (void)state;
    *size = sizeof *c;
    return OK;
}
EXPORT int F(fmi2SerializeFMUstate)(Instance *c, void *state, char *bytes, size_t size)
{
    (void)c;
    return copy_bytes(bytes, state, size);
}
EXPORT int F(fmi2DeSerializeFMUstate)(Instance *c, const char *bytes, size_t size, void **state)
{
    return size == sizeof *c && copy_state(c, state) == OK ? copy_bytes(*state, bytes, size) : FAILED;
}
EXPORT int F(fmi2FreeFMUstate)(Instance *c, void **state) { (void)c; return free_state(state); }

IDLE(F(fmi2SetDebugLogging), (Instance *c, int on, size_t n, const char *const *categories))
IDLE(F(fmi2EnterInitializationMode), (Instance *c))
IDLE(F(fmi2ExitInitializationMode), (Instance *c))
IDLE(F(fmi2Terminate), (Instance *c))
REFUSED(F(fmi2GetString), (Instance *c, const Ref *refs, size_t n, const char **values))
REFUSED(F(fmi2SetString), (Instance *c, const Ref *refs, size_t n, const char *const *values))
REFUSED(F(fmi2GetDirectionalDerivative), (Instance *c, const Ref *unknown, size_t n, const Ref *known, size_t m,
    const double *seed, double *values))
REFUSED(F(fmi2SetRealInputDerivatives), (Instance *c, const Ref *refs, size_t n, const int *order, const double *v))
REFUSED(F(fmi2GetRealOutputDerivatives), (Instance *c, const Ref *refs, size_t n, const int *order, double *v))
REFUSED(F(fmi2CancelStep), (Instance *c))
REFUSED(F(fmi2GetStatus), (Instance *c, int kind, int *value))
REFUSED(F(fmi2GetRealStatus), (Instance *c, int kind, double *value))
REFUSED(F(fmi2GetIntegerStatus), (Instance *c, int kind, int *value))
REFUSED(F(fmi2GetBooleanStatus), (Instance *c, int kind, int *value))
REFUSED(F(fmi2GetStringStatus), (Instance *c, int kind, const char **value))
