// SPDX-License-Identifier: Apache-2.0
// The timeline's painter: each lane is filled from below with the shares of its time in reads,
// writes and other calls, and in waits for other ranks. Lanes that are too low for that have the
// colour of the kind of I/O that took most time, the stronger the larger the share of all kinds is;
// that of waiting where there is hardly any I/O.

const KINDS = [
  ['read', PLANES.read_ns], ['write', PLANES.write_ns], ['other', PLANES.other_ns],
  ['waiting', PLANES.waiting_ns]
];
const HARDLY = 1 / 16; // of the time that is waited
const LOW = 5; // pixels: lanes below this are coloured, not filled
const STRENGTHS = 64;

// Colours from nearly the ground to the colour itself, evenly.
function strengths(ground, colour) {
  const made = new Uint32Array(STRENGTHS + 1);
  for (let i = 0; i <= STRENGTHS; i++) {
    const part = 0.3 + 0.7 * i / STRENGTHS;
    const mixed = [0, 8, 16].map(
        (shift) => Math.round((ground >> shift & 255) * (1 - part) + (colour >> shift & 255) * part)
            << shift);
    made[i] = (0xff000000 | mixed[0] | mixed[1] | mixed[2]) >>> 0;
  }
  return made;
}

const lanesPainter = {
  paint({ pixels, width, lane, order, level, columns, ranks, colour }) {
    const empty = pixel(colour('lane')), colours = KINDS.map(([kind]) => pixel(colour(kind)));
    const inner = lane >= LOW ? lane - 1 : lane; // a line of ground between lanes
    const paintLane = lane >= LOW ? this.fill : this.tint,
          inks = lane >= LOW ? colours : colours.map((one) => strengths(empty, one));
    order.forEach((row, at) => {
      const top = at * lane * width;
      pixels.fill(empty, top, top + inner * width);
      paintLane({
        pixels,
        width,
        top,
        inner,
        inks,
        planes: level.planes,
        at: row * level.slices,
        columns,
        whole: level.slice_s * 1e9 * ranks[row]
      });
    });
  },

  fill({ pixels, width, top, inner, inks, planes, at, columns, whole }) {
    for (let x = 0; x < width; x++) {
      if (columns[x] < 0) continue;
      let bottom = inner;
      for (let kind = 0; kind < KINDS.length && bottom > 0; kind++) {
        const share = planes[KINDS[kind][1]][at + columns[x]] / whole;
        if (share === 0) continue;
        const end = Math.max(0, bottom - Math.max(1, Math.round(share * inner)));
        for (let y = bottom - 1; y >= end; y--) pixels[top + y * width + x] = inks[kind];
        bottom = end;
      }
    }
  },

  tint({ pixels, width, top, inner, inks, planes, at, columns, whole }) {
    const [reads, writes, others, waits] = KINDS.map(([, plane]) => planes[plane]);
    for (let x = 0; x < width; x++) {
      if (columns[x] < 0) continue;
      const i = at + columns[x], read = reads[i], write = writes[i], other = others[i],
            waiting = waits[i], sum = read + write + other;
      if (sum + waiting === 0) continue;
      const kind = sum < waiting * HARDLY ? 3 :
          read >= write && read >= other  ? 0 :
          write >= other                  ? 1 :
                                            2;
      const ink = inks[kind][Math.round(
          Math.sqrt(Math.min(1, (kind === 3 ? waiting : sum) / whole)) * STRENGTHS)];
      for (let y = 0; y < inner; y++) pixels[top + y * width + x] = ink;
    }
  },

  tell(sums, seconds, ranks) {
    const share = (ns) => `${digits(100 * ns / (seconds * 1e9 * ranks))} %`;
    const lines = [
      sums.read_ns || sums.read_bytes ?
          `reads ${share(sums.read_ns)}, ${inBytes(sums.read_bytes)}` :
          '',
      sums.write_ns || sums.written_bytes ?
          `writes ${share(sums.write_ns)}, ${inBytes(sums.written_bytes)}` :
          '',
      sums.other_ns ? `other calls ${share(sums.other_ns)}` : '',
      sums.waiting_ns ? `waits in MPI ${share(sums.waiting_ns)}` : '',
      sums.calls ? `about ${digits(sums.calls)} calls` : '',
    ].filter(Boolean);
    return lines.length ? lines.join('\n') : 'no I/O';
  },
};
