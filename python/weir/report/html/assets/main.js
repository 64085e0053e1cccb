// SPDX-License-Identifier: Apache-2.0
// Starts what the page has: sorting at once, plots when their numbers are unpacked.

async function start() {
  for (const table of document.querySelectorAll('table.sortable')) makeSortable(table);
  const redrawn = [];
  if ('timeline' in weirData) {
    const lanes = await Tiles.load('timeline'), view = new View(lanes.length_s, lanes.slice_s);
    for (const figure of document.querySelectorAll('figure[data-tiles="timeline"]')) {
      const plot = new LanePlot(
          figure, lanes, view,
          figure.dataset.plot === 'heat' ? new HeatPainter(figure, view) : lanesPainter);
      plot.draw();
      redrawn.push(() => plot.draw());
    }
    const rates = await Tiles.load('rates');
    for (const element of document.querySelectorAll('[data-lines]')) {
      const plot = new RatePlot(element, rates, view);
      redrawn.push(() => plot.rebuild());
    }
    bindTools(document.querySelector('figure[data-plot="rates"]'), view);
    window.weirView = view; // for who wants to move the plots by script
  }
  const redraw = () => redrawn.forEach((draw) => draw());
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', redraw);
  window.addEventListener('beforeprint', () => {
    document.documentElement.dataset.theme = 'light';
    redraw();
  });
  window.addEventListener('afterprint', () => {
    delete document.documentElement.dataset.theme;
    redraw();
  });
  document.documentElement.dataset.ready = 'yes';
}

start();
