// SPDX-License-Identifier: Apache-2.0
// Tables that sort by a click on a heading: numbers as numbers, largest first, the rest by the
// alphabet. Footers stay.

const FACTORS = { K: 1e3, '%': 1 };

// A cell's number, or NaN: 69K, 1.5, 4 %, 12,345.
function numberOf(text) {
  const found = /^([<]?)(-?\d[\d,\s\u00a0]*(?:\.\d+)?(?:e[-+]?\d+)?)\s*(K|%)?$/.exec(text);
  return found === null ?
      NaN :
      Number(found[2].replace(/[,\s\u00a0]/g, '')) * (FACTORS[found[3]] ?? 1) -
          (found[1] ? 1e-6 : 0);
}

function sortBy(table, column, header) {
  const body = table.tBodies[0], text = (row) => row.cells[column]?.textContent.trim() ?? '';
  const rows = [...body.rows].map((row) => ({ row, text: text(row), number: numberOf(text(row)) }));
  const numeric = rows.filter((one) => !Number.isNaN(one.number)).length * 2 > rows.length;
  const before = header.getAttribute('aria-sort'),
        falling = before === null ? numeric : before === 'ascending';
  const key = (one) => (Number.isNaN(one.number) ? -Infinity : one.number);
  rows.sort(
      (a, b) => (numeric ? key(a) - key(b) : a.text.localeCompare(b.text)) * (falling ? -1 : 1));
  for (const one of table.tHead.querySelectorAll('th')) one.removeAttribute('aria-sort');
  header.setAttribute('aria-sort', falling ? 'descending' : 'ascending');
  body.append(...rows.map((one) => one.row));
}

function makeSortable(table) {
  const heads = table.tHead?.rows[table.tHead.rows.length - 1];
  if (!heads || table.tBodies[0].rows.length < 2) return;
  [...heads.cells].forEach((header, column) => {
    if (header.textContent.trim() === '') return;
    const button = document.createElement('button');
    button.type = 'button';
    button.textContent = header.textContent;
    header.replaceChildren(button);
    button.addEventListener('click', () => sortBy(table, column, header));
  });
}
