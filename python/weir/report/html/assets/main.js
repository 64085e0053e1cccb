// SPDX-License-Identifier: Apache-2.0
// Starts what the page has: sorting at once, plots when their numbers are unpacked.

// A link to a section unfolds it.
function unfold(hash) {
  const there = document.getElementById(hash.slice(1));
  const fold = there?.querySelector(':scope > details') ?? there?.closest('details.fold');
  if (fold) fold.open = true;
}

function bindFolds() {
  const folds = [...document.querySelectorAll('details.fold')],
        button = document.getElementById('unfold-all');
  const name = () => {
    button.textContent = folds.every((one) => one.open) ? 'Fold all' : 'Unfold all';
  };
  button.addEventListener('click', () => {
    const open = !folds.every((one) => one.open);
    for (const one of folds) one.open = open;
  });
  for (const one of folds) one.addEventListener('toggle', name);
  const follow = () => {
    if (location.hash.length > 1) unfold(location.hash);
  };
  // before the browser scrolls there, also where the address is the same again
  for (const link of document.querySelectorAll('nav a, .found a, .advices a'))
    link.addEventListener('click', () => unfold(link.hash));
  window.addEventListener('hashchange', follow);
  follow();
}

async function start() {
  bindFolds();
  const ranks = document.querySelector('[data-ranks]');
  if (ranks !== null) new RankBars(ranks, weirData.overview);
  for (const table of document.querySelectorAll('table.sortable')) makeSortable(table);
  const redrawn = [];
  if ('timeline' in weirData) {
    const lanes = await Tiles.load('timeline'), view = new View(lanes.length_s, lanes.slice_s);
    for (const figure of document.querySelectorAll('figure[data-tiles="timeline"]')) {
      const painter =
          figure.dataset.plot === 'heat' ? new HeatPainter(figure, view, lanes) : lanesPainter;
      const plot = new LanePlot(figure, lanes, view, painter);
      painter.bind?.(plot);
      plot.draw();
      redrawn.push(() => plot.draw());
    }
    const rates = await Tiles.load('rates');
    for (const element of document.querySelectorAll('[data-lines]')) {
      const plot = new RatePlot(element, rates, view);
      redrawn.push(() => plot.rebuild());
    }
    bindTools(document.querySelector('figure[data-plot="rates"]'), view);
    for (const figure of document.querySelectorAll('figure[data-plot="offsets"]')) {
      const plot = new OffsetPlot(figure, await Offsets.load(figure.dataset.at), lanes, view);
      redrawn.push(() => plot.draw());
    }
    for (const link of document.querySelectorAll('a[data-from]'))
      link.addEventListener('click', () => view.set(+link.dataset.from, +link.dataset.until));
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
