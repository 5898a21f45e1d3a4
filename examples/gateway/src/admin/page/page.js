'use strict';

const $ = (id) => document.getElementById(id);
const SERIES = [
  { key: 'allowed', label: 'allowed' },
  { key: 'denied', label: 'denied' },
  { key: 'open', label: 'failed open' },
  { key: 'closed', label: 'failed closed' },
];
// What each line of the legend adds up, by the names that the metrics have.
const OUTCOMES = {
  allowed: 'allowed', denied: 'denied', locked: 'locked', error_allowed: 'failed open',
  error_denied: 'failed closed', no_key: 'no key', blocked: 'blocked', skipped: 'not limited',
  shadow_denied: 'denied by a shadow',
};
const CLASSES = { allowed: 'allowed', denied: 'denied', locked: 'denied', error_allowed: 'open' };

let state = JSON.parse($('state').textContent);
let seconds = state.seconds;
const cards = new Map();
let latency;

const count = (number) => number.toLocaleString('en');
const clock = (second) => new Date(second * 1000).toLocaleTimeString('en-GB');
const digits = (number) => Number(number.toFixed(number < 10 ? 1 : 0));
const time = (micros) => micros == null ? '–'
  : micros === 0 ? '0'
  : micros < 1e3 ? `${digits(micros)} µs`
  : micros < 1e6 ? `${digits(micros / 1e3)} ms` : `${digits(micros / 1e6)} s`;
const span = (secs) => secs < 60 ? `${Math.ceil(secs)} s`
  : secs < 7200 ? `${Math.round(secs / 60)} min` : `${Math.round(secs / 3600)} h`;
const color = (name) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();

function make(tag, className, text) {
  const element = document.createElement(tag);
  if (className) element.className = className;
  if (text !== undefined) element.textContent = text;
  return element;
}

// A chart that keeps its width, its colours, and, by the arrow keys, a place to read.
function chart(section, label, series, tell) {
  const holder = section.querySelector('.chart');
  const readout = section.querySelector('.readout');
  holder.setAttribute('aria-label', `${label}; the arrow keys read single seconds`);
  const chart = { plot: null, data: null };
  const say = (at) => { readout.textContent = at == null ? '' : tell(at); };
  chart.draw = () => {
    if (chart.plot) chart.plot.destroy();
    const axis = { stroke: color('soft'), grid: { stroke: color('grid'), width: 1 }, ticks: { show: false } };
    chart.plot = new uPlot({
      width: holder.clientWidth, height: 180, legend: { show: false },
      padding: [8, 22, 0, 0],
      cursor: { y: false, drag: { x: false, y: false }, points: { show: false } },
      scales: {
        x: { range: () => { const end = last(); return [end - state.window + 1, end + 1]; } },
        y: { distr: series.log ? 3 : 1, range: (_, min, max) => series.range(min, max) },
      },
      axes: [
        { ...axis, size: 30, space: 60, values: (_, splits) => splits.map((at) => clock(at).slice(0, 5)), incrs: [60, 120] },
        { ...axis, size: 56, space: 34, incrs: series.incrs, filter: series.filter, grid: { ...axis.grid, filter: series.filter }, values: (_, splits) => splits.map((at) => at == null ? '' : series.value(at)) },
      ],
      series: [{}, ...series.draw()],
      hooks: { setCursor: [(plot) => say(plot.cursor.idx)] },
    }, chart.data, holder);
  };
  chart.set = (data) => {
    chart.data = data;
    if (chart.plot) chart.plot.setData(data); else chart.draw();
  };
  let at = null;
  holder.addEventListener('keydown', (event) => {
    const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (!step || !seconds.length) return;
    event.preventDefault();
    at = Math.min(Math.max((at ?? seconds.length) + step, 0), seconds.length - 1);
    chart.plot.setCursor({ left: chart.plot.valToPos(seconds[at][0], 'x'), top: 10 });
    say(at);
  });
  holder.addEventListener('blur', () => { at = null; say(null); });
  new ResizeObserver(() => {
    const width = holder.clientWidth;
    if (chart.plot && width !== chart.plot.width) chart.plot.setSize({ width, height: 180 });
  }).observe(holder);
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', chart.draw);
  return chart;
}

const last = () => seconds.length ? seconds[seconds.length - 1][0] : Date.now() / 1000;

function card(name, at) {
  const section = make('section', 'card');
  const head = make('div', 'head');
  head.append(make('h2', '', `Policy ${name}`), make('p', 'readout'));
  head.lastChild.setAttribute('aria-live', 'polite');
  const holder = make('div', 'chart');
  holder.tabIndex = 0;
  holder.setAttribute('role', 'img');
  const legend = make('ul', 'legend');
  section.append(head, holder, legend);
  $('policies').append(section);
  const bars = uPlot.paths.bars({ size: [0.9, 6], align: 1 });
  const draw = () => [...SERIES].reverse().map(({ key, label }) => (
    { label, fill: color(key), stroke: color(key), width: 0, paths: bars, points: { show: false } }
  ));
  const tell = (index) => {
    const [second, , , rows] = seconds[index];
    const parts = SERIES.map(({ label }, series) => [label, (rows[at] || [])[series] || 0]);
    const seen = parts.filter(([label, units], series) => series < 2 || units);
    return `${clock(second)}  ${seen.map(([label, units]) => `${label} ${count(units)}`).join(', ')}`;
  };
  const value = (units) => count(units);
  const range = (_, max) => [0, Math.max(4, max * 1.1)];
  const incrs = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1e3, 2e3, 5e3, 1e4, 2e4, 5e4, 1e5, 2e5, 5e5, 1e6];
  const drawn = chart(section, `Requests per second by policy ${name}`, { draw, value, incrs, range, filter: (_, splits) => splits }, tell);
  return { name, legend, chart: drawn };
}

// Stacked: the series that is drawn first is the sum of all.
function stacked(at) {
  const columns = [seconds.map(([second]) => second)];
  for (let series = SERIES.length; series > 0; series -= 1) {
    columns.push(seconds.map(([, , , rows]) => (rows[at] || []).slice(0, series).reduce((sum, it) => sum + it, 0)));
  }
  return columns;
}

function showLegend({ name, legend }, outcomes) {
  const shown = { allowed: 0, denied: 0, error_allowed: 0, ...outcomes };
  legend.replaceChildren(...Object.keys(OUTCOMES).filter((key) => key in shown).map((key) => {
    const item = make('li', CLASSES[key] || 'closed', `${OUTCOMES[key]} `);
    const number = make('b', '', count(shown[key]));
    number.dataset.policy = name;
    number.dataset.outcome = key;
    item.append(number);
    return item;
  }));
}

function pill(id, text, good) {
  $(id).textContent = text;
  $(id).className = good == null ? '' : good ? 'good' : 'bad';
}

function showStatus() {
  const ready = { true: 'ready', false: 'not ready', null: 'not asked yet' }[state.ready];
  pill('store', `${state.store} ${ready}`, state.ready);
  $('why').textContent = state.ready === false ? `${state.store} is not ready: ${state.why}` : '';
  pill('breaker', `breaker ${state.breaker.replace('_', ' ')}`, state.breaker === 'closed');
  const failures = Object.entries(state.failures).map(([kind, times]) => `${kind} ${count(times)}`);
  const before = state.last_failure ? `; the last ${span(state.last_failure.seconds_ago)} ago` : '';
  $('failures').textContent = failures.length ? `Calls that ${state.store} did not answer: ${failures.join(', ')}${before}` : '';
}

function showTiles() {
  const sums = [0, 0, 0];
  for (const { outcomes } of state.policies) {
    sums[0] += outcomes.allowed || 0;
    sums[1] += (outcomes.denied || 0) + (outcomes.locked || 0);
    sums[2] += outcomes.error_allowed || 0;
  }
  const rows = seconds.length ? seconds[seconds.length - 1][3] : [];
  ['allowed', 'denied', 'open'].forEach((key, series) => {
    $(`sum-${key}`).textContent = count(sums[series]);
    $(`rate-${key}`).textContent = `${count(rows.reduce((sum, row) => sum + row[series], 0))} per second`;
  });
  $('p50').textContent = time(state.latency.p50);
  $('p99').textContent = time(state.latency.p99);
  $('p-count').textContent = `${count(state.latency.count)} decisions`;
}

function showTop() {
  $('top-none').hidden = state.top.length > 0;
  $('top').hidden = !state.top.length;
  $('top').tBodies[0].replaceChildren(...state.top.map(({ policy, limit, key, denied, over }) => {
    const row = make('tr');
    const number = make('td', 'number', over ? `≤ ${count(denied)}` : count(denied));
    row.append(make('td', '', key), make('td', '', `${policy} / ${limit}`), number);
    return row;
  }));
}

function fill(select, names) {
  if (names.join('\n') === [...select.options].map((option) => option.value).join('\n')) return;
  const chosen = select.value;
  select.replaceChildren(...names.map((name) => new Option(name, name)));
  if (names.includes(chosen)) select.value = chosen;
}

function showForm() {
  const { policy, limit } = $('key').elements;
  const known = state.policies.filter(({ limits }) => limits.length);
  fill(policy, known.map(({ name }) => name));
  const now = known.find(({ name }) => name === policy.value);
  fill(limit, now ? now.limits : []);
}

function show() {
  showStatus();
  showTiles();
  state.policies.forEach(({ name, outcomes }, at) => {
    if (!cards.has(name)) cards.set(name, card(name, at));
    cards.get(name).chart.set(stacked(at));
    showLegend(cards.get(name), outcomes);
  });
  latency.set([0, 1, 2].map((column) => seconds.map((second) => second[column])));
  showTop();
  showForm();
}

function take(next) {
  if (next.started !== state.started) {
    // Another process, which has its policies in another order.
    location.reload();
    return;
  }
  const known = last();
  seconds = [...seconds, ...next.seconds.filter(([second]) => !seconds.length || second > known)];
  seconds = seconds.slice(-next.window);
  state = next;
  show();
}

async function ask(path, done) {
  const form = $('key');
  const output = form.querySelector('output');
  if (!form.reportValidity()) return;
  output.className = 'wide';
  output.textContent = '…';
  try {
    const response = await fetch(path, {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'x-tollgate-admin': 'page' },
      body: JSON.stringify(Object.fromEntries(new FormData(form))),
    });
    const answer = await response.json();
    if (!response.ok) throw new Error(answer.error);
    const wait = !answer.remaining && answer.wait_seconds ? `, the next in ${span(answer.wait_seconds)}` : '';
    const back = answer.reset_seconds > 0 ? `, all are back in ${span(answer.reset_seconds)}` : '';
    const locked = answer.locked_seconds != null ? `; locked for ${span(answer.locked_seconds)}` : '';
    output.textContent = `${answer.key}: ${done}${count(answer.remaining)} of ${count(answer.of)} left${wait}${back}${locked}.`;
  } catch (error) {
    output.className = 'wide bad';
    output.textContent = `${error.message || 'no answer'}.`;
  }
}

$('key').addEventListener('submit', (event) => { event.preventDefault(); ask('/key/look', ''); });
$('refund').addEventListener('click', () => ask('/key/refund', 'given back, '));
$('reset').addEventListener('click', () => {
  const form = $('key');
  if (form.reportValidity() && confirm(`Reset ${form.elements.key.value}?`)) ask('/key/reset', 'reset, ');
});
$('key').elements.policy.addEventListener('change', showForm);

latency = chart($('latency'), 'Microseconds to decide', {
  draw: () => [['p50', 'focus'], ['p99', 'late']].map(([label, name]) => ({
    label, stroke: color(name), paths: () => null, points: { show: true, size: 5, width: 0, fill: color(name) },
  })),
  value: time,
  log: true,
  // Whole powers of ten, and no lines between them.
  range: (min, max) => [10 ** Math.floor(Math.log10(min || 10)), 10 ** Math.ceil(Math.log10((max || 100) * 1.01))],
  filter: (_, splits) => splits.map((at) => /^10*$/.test(Math.round(at)) ? at : null),
}, (at) => `${clock(seconds[at][0])}  p50 ${time(seconds[at][1])}, p99 ${time(seconds[at][2])}`);
show();

const source = new EventSource('/live');
source.onmessage = ({ data }) => { pill('link', 'live', true); take(JSON.parse(data)); };
source.onerror = () => pill('link', source.readyState === 2 ? 'not connected: load again' : 'connecting again', false);
