"""The small functions that C exports bring along, each where it is needed; see `c_words.typed`."""

from clearloop.export.statements import layer_function

_HELPERS = {
    "clip": """/* x, but at least low and at most high */
static real clip(real x, real low, real high)
{
    return fmin(fmax(x, low), high);
}
""",
    "limited": """/* an input as it is read: at most 1e12 */
static real limited(real x)
{
    return clip(x, <-1e12>, <1e12>);
}
""",
    "saturated": """/* the largest number in place of an infinite one */
static real saturated(real x)
{
    return clip(x, <-1.7976931348623157e308>, <1.7976931348623157e308>);
}
""",
    "divided": """/* a/b; 0 where b is 0 */
static real divided(real a, real b)
{
    return b == <0> ? <0> : saturated(a/b);
}
""",
    "power": """/* base to the exponent; 0 where there is no such number */
static real power(real base, real exponent)
{
    if (base == <0>) { return exponent == <0> ? <1> : <0>; }
    if (base < <0> && exponent != floor(exponent)) { return <0>; }
    return saturated(pow(base, exponent));
}
""",
    "angle": """/* of the point (x, y); zeros have no sign here */
static real angle(real y, real x)
{
    return atan2(y + <0>, x + <0>);
}
""",
    "sign": """/* -1, 0 or 1 */
static real sign(real x)
{
    return x > <0> ? <1> : x < <0> ? <-1> : <0>;
}
""",
    "wrap": """/* the angle in [-pi, pi) */
static real wrap(real x)
{
    const real pi = <3.141592653589793>, turn = <6.283185307179586>;
    const real rest = x - turn*floor((x + pi)/turn);
    return rest >= -pi && rest < pi ? rest : -pi;
}
""",
    "level": """/* the nearest of the levels that cut low to high into count equal steps */
static real level(real x, real low, real high, real count)
{
    const real k = floor((clip(x, low, high) - low)*count/(high - low) + <0.5>);
    return fmin(low + k*(high - low)/count, high);
}
""",
    "shift": """/* all values become one step older */
static void shift(real *past, int count)
{
    for (int k = count - 1; k > 0; k--) { past[k] = past[k - 1]; }
}
""",
    "fill": """static void fill(real *past, int count, real x)
{
    for (int k = 0; k < count; k++) { past[k] = x; }
}
""",
    "weighted_mean": """/* of the outputs, weighted by e to the fits, so that the largest weight is 1 */
static real weighted_mean(const real *fits, const real *outputs, int count)
{
    real best = fits[0], sum = <0>, weights = <0>;
    for (int k = 1; k < count; k++) { best = fmax(best, fits[k]); }
    for (int k = 0; k < count; k++) {
        const real weight = exp(fits[k] - best);
        sum += weight*outputs[k];
        weights += weight;
    }
    return sum/weights;
}
""",
}

_LAYER = """/* a layer of a network: {words} */
static void {name}(const real *weights, const real *bias, const real *x, int inputs, real *y, int outputs)
{{
    for (int i = 0; i < outputs; i++) {{
        real sum = <0>;
        for (int j = 0; j < inputs; j++) {{ {add}; }}
        sum = {bias};
        y[i] = {value};
    }}
}}
"""
_ACTIVATIONS = {
    "identity": "sum",
    "relu": "fmax(sum, <0>)",
    "tanh": "tanh(sum)",
    "sigmoid": "<0.5> + <0.5>*tanh(<0.5>*sum)",
}


def _layer_helper(activation: str, over: bool) -> str:
    add, bias = "sum += weights[i*inputs + j]*x[j]", "sum + bias[i]"
    if over:
        add = "sum = saturated(sum + saturated(weights[i*inputs + j]*x[j]))"
        bias = f"saturated({bias})"
    return _LAYER.format(
        name=layer_function(activation, over),
        words=activation,
        add=add,
        bias=bias,
        value=_ACTIVATIONS[activation],
    )


HELPERS = _HELPERS | {
    layer_function(activation, over): _layer_helper(activation, over)
    for activation in _ACTIVATIONS
    for over in (False, True)
}
