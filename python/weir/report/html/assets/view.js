// SPDX-License-Identifier: Apache-2.0
// The stretch of time that all plots show, and what moves it: keys, buttons, pointer. Plots listen
// and draw.

class View {
  #listeners = [];
  #asked = false;

  constructor(length_s, slice_s) {
    this.length = length_s;
    this.least = Math.min(length_s, slice_s * 16);
    this.from = 0;
    this.until = length_s;
  }

  get span() { return this.until - this.from; }

  // `draw` is called at most once a frame, however often the view moved.
  listen(draw) { this.#listeners.push(draw); }

  set(from, until) {
    const span = Math.min(this.length, Math.max(this.least, until - from));
    const middle = (from + until) / 2;
    this.from = Math.min(Math.max(0, middle - span / 2), this.length - span);
    this.until = this.from + span;
    this.redraw();
  }

  redraw() {
    if (this.#asked) return;
    this.#asked = true;
    requestAnimationFrame(() => {
      this.#asked = false;
      for (const draw of this.#listeners) draw();
    });
  }

  // Around a place that keeps its own place on the screen.
  zoom(factor, around = (this.from + this.until) / 2) {
    const span = Math.min(this.length, Math.max(this.least, this.span * factor)),
          share = (around - this.from) / this.span;
    this.set(around - span * share, around + span * (1 - share));
  }

  move(share) { this.set(this.from + share * this.span, this.until + share * this.span); }

  do(what) {
    const steps = {
      in: () => this.zoom(0.5), out: () => this.zoom(2), all: () => this.set(0, this.length),
      left: () => this.move(-0.25), right: () => this.move(0.25),
    };
    steps[what]?.();
    return what in steps;
  }
}

const KEYS = {
  '+': 'in',
  '=': 'in',
  '-': 'out',
  ArrowLeft: 'left',
  ArrowRight: 'right',
  0: 'all',
  Home: 'all'
};

// Keys, wheel and drags on an element; secondsAt tells the time under a clientX, select(from,
// until) shows a stretch being drawn.
function steer(element, view, secondsAt, select) {
  element.addEventListener('keydown', (event) => {
    if (!event.ctrlKey && !event.metaKey && !event.altKey && event.key in KEYS &&
        view.do(KEYS[event.key]))
      event.preventDefault();
  });
  element.addEventListener('wheel', (event) => {
    if (event.ctrlKey || event.metaKey)
      view.zoom(Math.exp(event.deltaY / 200), secondsAt(event.clientX));
    else if (Math.abs(event.deltaX) > Math.abs(event.deltaY))
      view.move(event.deltaX / element.clientWidth);
    else
      return;
    event.preventDefault();
  }, {passive: false});
  element.addEventListener('dblclick', () => view.do('all'));
  element.addEventListener('pointerdown', (event) => {
    if (event.button !== 0) return;
    const start = secondsAt(event.clientX), x = event.clientX,
          moves = event.shiftKey || event.pointerType === 'touch';
    const from = view.from, perPixel = secondsAt(x + 1) - start;
    element.setPointerCapture(event.pointerId);
    const drag = (move) => {
      if (moves)
        view.set(
            from - (move.clientX - x) * perPixel, from - (move.clientX - x) * perPixel + view.span);
      else
        select(start, secondsAt(move.clientX));
    };
    const end = (up) => {
      element.removeEventListener('pointermove', drag);
      element.removeEventListener('pointerup', end);
      element.removeEventListener('pointercancel', end);
      select(0, 0);
      const until = secondsAt(up.clientX);
      if (up.type === 'pointerup' && !moves && Math.abs(up.clientX - x) > 4)
        view.set(Math.min(start, until), Math.max(start, until));
    };
    element.addEventListener('pointermove', drag);
    element.addEventListener('pointerup', end);
    element.addEventListener('pointercancel', end);
  });
}

function bindTools(figure, view) {
  for (const button of figure.querySelectorAll('[data-do]'))
    button.addEventListener('click', () => view.do(button.dataset.do));
}

// Times for an axis: about `wanted` round numbers between two others.
function ticks(from, until, wanted) {
  const rough = (until - from) / Math.max(1, wanted), power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((f) => f * power).find((one) => one >= rough);
  const made = [];
  for (let i = Math.ceil(from / step); i * step <= until; i++) made.push(i * step);
  return { step, made };
}

// A time with as many digits as its neighbours need, in ms when all lie so near together.
function tickText(value, step) {
  return value.toFixed(Math.max(0, -Math.floor(Math.log10(step) + 1e-9)));
}
