// SPDX-License-Identifier: Apache-2.0
// Lines of bandwidth and calls over time, drawn by uPlot from the slices that suit the view.

const LINES = {
  bytes: {
    unit: 'MB/s',
    planes:
        [['read', 'read', PLANES.read_bytes, 1e6], ['written', 'write', PLANES.written_bytes, 1e6]]
  },
  calls: {unit: 'calls/s', planes: [['calls', 'other', PLANES.calls, 1]]},
};
const DASHES = [[], [6, 3], [2, 3], [10, 3, 2, 3]];

class RatePlot {
  constructor(element, tiles, view) {
    Object.assign(this, { element, tiles, view });
    this.lines = LINES[element.dataset.lines];
    this.#build();
    view.listen(drawnWhenSeen(element, () => this.draw()));
    new ResizeObserver(() => this.plot.setSize(this.#size())).observe(element);
  }

  rebuild() {
    this.plot.destroy();
    this.#build();
  }

  #size() { return { width: Math.max(200, this.element.clientWidth), height: 190 }; }

  #series(colour) {
    const several = this.tiles.rows.length > 1;
    return this.tiles.rows.flatMap((group, g) => this.lines.planes.map(([name, kind]) => ({
      label: several ? `${group}: ${name}` : name,
      stroke: this.lines.planes.length > 1 ? colour(kind) : colour('active'),
      width: 1.5, dash: DASHES[g % DASHES.length], points: { show: false },
      paths: uPlot.paths.stepped({ align: 1 }),
      value: (_, v) => (v == null ? '\u2013' : `${digits(v)} ${this.lines.unit}`),
    })));
  }

  #build() {
    const colour = theme(), axis = {
      stroke: colour('muted'),
      grid: {stroke: colour('line'), width: 1},
      ticks: {stroke: colour('line'), width: 1},
      font: '12px system-ui, sans-serif'
    };
    this.plot = new uPlot(
        {
          ...this.#size(),
          scales: {x: {time: false, range: () => [this.view.from, this.view.until]}},
          axes: [
            {...axis, label: 's', labelSize: 16, labelGap: -2, labelFont: axis.font, size: 32},
            {...axis, size: 56, values: (_, all) => all.map(short)}
          ],
          series: [
            {label: 'at s', value: (_, v) => (v == null ? '\u2013' : this.#place(v))},
            ...this.#series(colour)
          ],
          cursor: {
            drag: {x: true, y: false, setScale: false},
            sync: {key: 'weir'},
            bind: {dblclick: () => () => this.view.do('all')}
          },
          legend: {
            live: true,
            markers: {width: 2, dash: (_, i) => (i > this.lines.planes.length ? 'dashed' : 'solid')}
          },
          hooks: {setSelect: [(plot) => this.#selected(plot)], draw: [(plot) => this.#seams(plot)]},
        },
        this.#data(), this.element);
  }

  #place(at) {
    const { step, seconds } = this.tiles.place(at);
    return this.tiles.segments.length > 1 ? `${step} ${digits(seconds)}` : digits(seconds);
  }

  #data() {
    const level = this.tiles.levelFor(this.view.span, this.element.clientWidth || 600);
    const first = Math.max(0, Math.floor(this.view.from / level.slice_s) - 1);
    const last = Math.min(level.slices, Math.ceil(this.view.until / level.slice_s) + 1);
    const times =
        Float64Array.from({length: last - first + 1}, (_, i) => (first + i) * level.slice_s);
    const values = this.tiles.rows.flatMap((_, row) => this.lines.planes.map(([, , plane, per]) => {
      const made = new Float64Array(times.length), from = level.planes[plane],
            at = row * level.slices + first;
      for (let i = 0; i < last - first; i++) made[i] = from[at + i] / per / level.slice_s;
      made[made.length - 1] = made[made.length - 2] ?? 0;
      return made;
    }));
    return [times, ...values];
  }

  draw() { this.plot.setData(this.#data()); }

  #selected(plot) {
    const { left, width } = plot.select;
    if (width > 4) this.view.set(plot.posToVal(left, 'x'), plot.posToVal(left + width, 'x'));
    if (width > 0) plot.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
  }

  // A line where a step begins.
  #seams(plot) {
    const { ctx, bbox } = plot;
    ctx.save();
    ctx.strokeStyle = theme()('muted');
    ctx.setLineDash([]);
    for (const segment of this.tiles.segments.slice(1)) {
      const x = plot.valToPos(segment.from_s, 'x', true);
      if (x > bbox.left && x < bbox.left + bbox.width)
        line(ctx, x, bbox.top, x, bbox.top + bbox.height);
    }
    ctx.restore();
  }
}
