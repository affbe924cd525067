// Numbers over time, drawn by uPlot: lines with the name and number of each above them, and where one points those of that moment.
// It draws on a canvas: what it shows is said in words too (aria-label), and its colours are asked of the style sheet.
import { useEffect, useRef, useState } from "./vendor/hooks.js";
import { grouped, html, local, span } from "./lib.js";

const HEIGHT = 130, NUMBERS = 58, SHORTEST = 120e3;
let library; // it comes with the first chart
const uplot = () => (library ||= import("./vendor/uplot.js").then((module) => module.default));
const dark = matchMedia("(prefers-color-scheme: dark)");

const number = (n) => (n >= 100 || Number.isInteger(n) ? grouped(Math.round(n)) : n.toFixed(1));
const two = (n) => String(n).padStart(2, "0");
function clock(seconds, step) {
	const t = new Date(seconds * 1000);
	return `${two(t.getHours())}:${two(t.getMinutes())}${step < 60 ? `:${two(t.getSeconds())}` : ""}${step < 1 ? `.${Math.floor(t.getMilliseconds() / 100)}` : ""}`;
}

// 1, 2 or 5 and zeros: the next one that is not smaller.
function ceiling(max) {
	if (!(max > 0)) return 1;
	const unit = 10 ** Math.floor(Math.log10(max));
	return [1, 2, 5, 10].map((n) => n * unit).find((n) => n >= max);
}

// A word at the right end would be cut off: half of it is outside.
const fits = (u, t) => ((u.scales.x.max - t) / (u.scales.x.max - u.scales.x.min)) * (u.width - NUMBERS) > 28;

function options(box, lines, words, top, shown, point, paths) {
	const colour = (name) => () => getComputedStyle(box).getPropertyValue("--" + name).trim();
	const axis = { stroke: colour("faint"), font: "11px system-ui, sans-serif", grid: { stroke: colour("line"), width: 1 }, ticks: { show: false }, gap: 4 };
	return {
		width: box.clientWidth, height: HEIGHT, legend: { show: false }, padding: [8, 4, 0, 0],
		cursor: { y: false, drag: { x: false, y: false }, points: { size: 6 } },
		scales: { x: { range: () => shown.current }, y: { range: (u, min, max) => [0, top(max)] } },
		axes: [
			{ ...axis, size: 22, space: 70, values: (u, ticks, i, space, step) => ticks.map((t) => (fits(u, t) ? clock(t, step) : "")) },
			{ ...axis, size: NUMBERS, splits: (u, i, min, max) => [0, max / 2, max], values: (u, ticks) => ticks.map((n) => words(n)) },
		],
		series: [{}, ...lines.map(([label, , tone], i) => ({ label, stroke: colour(tone), width: 1.5, ...paths, points: { show: (u) => u.data[0].length === 1, size: 4 }, fill: i ? undefined : () => colour(tone)() + "18" }))],
		hooks: { setCursor: [(u) => point(u.cursor.idx ?? null)] },
	};
}

// lines: [name, row => number, tone]. stepped: between two rows nothing has changed. All rows, which are the last hour at most; the last `shortest` milliseconds at least.
export function Chart({ title, rows, lines, words = number, top = ceiling, shortest = SHORTEST, stepped }) {
	const [at, point] = useState(null), box = useRef(), plot = useRef(), shown = useRef();
	const end = rows[rows.length - 1].at, row = rows[at] || rows[rows.length - 1];
	const data = [rows.map((r) => r.at / 1000), ...lines.map(([, of]) => rows.map(of))];
	const drawn = useRef();
	shown.current = [(end - Math.max(shortest, end - rows[0].at)) / 1000, end / 1000];
	drawn.current = data;
	useEffect(() => {
		let gone = false;
		const place = box.current, again = () => plot.current?.redraw();
		const fit = new ResizeObserver(() => gone || plot.current.setSize({ width: place.clientWidth, height: HEIGHT }));
		uplot().then((Plot) => {
			if (gone) return;
			plot.current = new Plot(options(place, lines, words, top, shown, point, stepped && { paths: Plot.paths.stepped({ align: 1 }) }), drawn.current, place);
			fit.observe(place);
		});
		dark.addEventListener("change", again);
		return () => {
			gone = true;
			dark.removeEventListener("change", again);
			fit.disconnect();
			plot.current?.destroy();
		};
	}, []);
	useEffect(() => plot.current?.setData(data), [end, rows.length]);
	return html`<figure class="chart"><figcaption><strong>${title}</strong>${lines.map(([name, of, tone]) => html`<span key=${name} class=${"key t-" + tone}><i></i>${name} <b>${words(of(row))}</b></span>`)}</figcaption>
		<div class="plot" ref=${box} role="img" aria-label=${`${title}, over ${span(end - rows[0].at)}, at the end: ${lines.map(([name, of]) => `${name} ${words(of(rows[rows.length - 1]))}`).join(", ")}`}></div>
		<div class="scale">${at !== null && rows[at] ? local(new Date(row.at).toISOString()) : "\u00a0"}</div></figure>`;
}
