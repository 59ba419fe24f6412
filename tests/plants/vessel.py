"""A vessel as an FMU of somebody else: x' = (u - x)/2, by four Euler steps in each control interval."""

import subprocess
from pathlib import Path

from clearloop.files import zipped

SOURCE = """
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

typedef struct { double inflow, level, first; } Vessel;

const char *fmi2GetTypesPlatform(void) { return "default"; }
const char *fmi2GetVersion(void) { return "2.0"; }
void *fmi2Instantiate(const char *n, int k, const char *g, const char *r, const void *f, int v, int l)
{
    Vessel *c = calloc(1, sizeof *c);
    c->first = 0.25;
    return c;
}
void fmi2FreeInstance(void *c) { free(c); }
int fmi2SetupExperiment(void *c, int b, double t, double s, int e, double end) { return 0; }
int fmi2EnterInitializationMode(Vessel *c) { c->level = c->first; return 0; }
int fmi2ExitInitializationMode(Vessel *c) { return 0; }
int fmi2Terminate(void *c) { return 0; }
int fmi2Reset(Vessel *c) { c->first = 0.25; c->inflow = 0.0; return RESET; }
int fmi2GetReal(Vessel *c, const unsigned *vr, size_t n, double *values)
{
    for (size_t k = 0; k < n; k++) { values[k] = (&c->inflow)[vr[k]]; }
    return 0;
}
int fmi2SetReal(Vessel *c, const unsigned *vr, size_t n, const double *values)
{
    for (size_t k = 0; k < n; k++) { (&c->inflow)[vr[k]] = values[k]; }
    return 0;
}
int fmi2DoStep(Vessel *c, double time, double step, int final)
{
    printf("an FMU may talk\\n");
    fflush(stdout);
    if (c->inflow > 90) { *(volatile int *)0 = 1; }
    if (c->inflow > 80) { for (;;) { (void)time; } }
    if (c->inflow > 70) { c->level = NAN; return 0; }
    if (c->inflow > 60) { return 3; }
    if (c->inflow > 50) { exit(5); }
    for (int k = 0; k < 4; k++) { c->level += step/4*(c->inflow - c->level)/2; }
    return 0;
}
#define NOT_THERE(name) int name(void) { return 3; }
"""
UNUSED = """
SetDebugLogging GetInteger SetInteger GetBoolean SetBoolean GetString SetString GetFMUstate SetFMUstate
FreeFMUstate SerializedFMUstateSize SerializeFMUstate DeSerializeFMUstate GetDirectionalDerivative CancelStep
SetRealInputDerivatives GetRealOutputDerivatives GetStatus GetRealStatus GetIntegerStatus GetBooleanStatus
GetStringStatus
"""
SOURCE += "\n".join(f"NOT_THERE(fmi2{name})" for name in UNUSED.split())
DESCRIPTION = """<?xml version="1.0" encoding="UTF-8"?>
<fmiModelDescription fmiVersion="2.0" modelName="vessel" guid="{1}">
  <CoSimulation modelIdentifier="vessel"/>
  <ModelVariables>
    <ScalarVariable name="valve.u" valueReference="0" causality="input"><Real start="0"/></ScalarVariable>
    <ScalarVariable name="x" valueReference="1" causality="output"><Real/></ScalarVariable>
    <ScalarVariable name="x0" valueReference="2" causality="parameter" variability="fixed" initial="exact"
      ><Real start="0.25"/></ScalarVariable>
  </ModelVariables>
  <ModelStructure><Outputs><Unknown index="2"/></Outputs></ModelStructure>
</fmiModelDescription>
"""
TASK = """
name = "vessel"
dt = 0.5
discount = 0.97
horizon = 30
[states]
level = { unit = "m", setpoint = 0.8 }
total = { formula = "clip(total[t-1] + level.error, -100, 100)" }
[actions]
inflow = { limits = [-1.0, 100.0] }
[reward]
expression = "-level.error**2 - 0.01*inflow**2"
[starts]
level = [0.0, 1.0]
[plant]
PLANT
"""
AS_FMU = """fmu = "vessel.fmu"
variables = { level = "x", inflow = "valve.u", "level.start" = "x0" }"""
AS_EQUATIONS = """next = { level = "c + 0.125*(inflow - c)/2" }
[plant.where]
a = "level + 0.125*(inflow - level)/2"
b = "a + 0.125*(inflow - a)/2"
c = "b + 0.125*(inflow - b)/2\""""


def make_vessel(folder: Path, *, reset: int = 0, library: str = "linux64/vessel.so") -> Path:
    """Compile the FMU; it cannot be set back if `reset` is 3."""
    (folder / "vessel.c").write_text(SOURCE.replace("RESET", str(reset)))
    subprocess.run(["gcc", "-w", "-shared", "-fPIC", "vessel.c", "-o", "vessel.so"], cwd=folder, check=True)
    binary = (folder / "vessel.so").read_bytes()
    file = folder / "vessel.fmu"
    file.write_bytes(zipped({"modelDescription.xml": DESCRIPTION.encode(), f"binaries/{library}": binary}))
    return file


def vessel_task(folder: Path, plant: str = AS_FMU) -> Path:
    """Write the task file beside the FMU."""
    file = folder / "vessel.toml"
    file.write_text(TASK.replace("PLANT", plant))
    return file
