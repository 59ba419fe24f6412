// Shapes and numbers that every drawing needs.

export const arrow = (context, x, y, dx, dy, colour, width = 4) => {
  const length = Math.hypot(dx, dy);
  if (length < 2) return;
  const head = Math.min(12, length), ux = dx / length, uy = dy / length;
  context.strokeStyle = context.fillStyle = colour;
  context.lineWidth = width;
  context.lineCap = "butt";
  context.beginPath();
  context.moveTo(x, y);
  context.lineTo(x + dx - ux * head * 0.8, y + dy - uy * head * 0.8);
  context.stroke();
  context.beginPath();
  context.moveTo(x + dx, y + dy);
  context.lineTo(x + dx - ux * head - uy * head * 0.6, y + dy - uy * head + ux * head * 0.6);
  context.lineTo(x + dx - ux * head + uy * head * 0.6, y + dy - uy * head - ux * head * 0.6);
  context.fill();
};

export const line = (context, x, y, to_x, to_y, colour, width, dash = []) => {
  context.strokeStyle = colour;
  context.lineWidth = width;
  context.lineCap = "round";
  context.setLineDash(dash);
  context.beginPath();
  context.moveTo(x, y);
  context.lineTo(to_x, to_y);
  context.stroke();
  context.setLineDash([]);
};

export const disc = (context, x, y, radius, colour) => {
  context.fillStyle = colour;
  context.beginPath();
  context.arc(x, y, radius, 0, 2 * Math.PI);
  context.fill();
};

export const box = (context, x, y, width, height, radius, colour) => {
  context.fillStyle = colour;
  context.beginPath();
  context.roundRect(x, y, width, height, radius);
  context.fill();
};

export const label = (context, text, x, y, colour, { align = "center", bold = false, size = 12 } = {}) => {
  context.font = `${bold ? 600 : 400} ${size}px system-ui, sans-serif`;
  context.textAlign = align;
  context.textBaseline = "middle";
  context.fillStyle = colour;
  context.fillText(text, x, y);
};

// A number of about three digits, with the same number of decimal places for the same size.
export const figure = (value) => {
  const size = Math.abs(value);
  const digits = size >= 100 ? 0 : size >= 10 ? 1 : 2;
  return value.toFixed(digits).replace("-", "−");
};

export const withUnit = (text, unit) => (unit ? `${text} ${unit}` : text);
