// The picture of a workflow, and what is drawn over it. The picture itself is an image: it can do nothing, whoever wrote its words.
import { useEffect, useState } from "./vendor/hooks.js";
import { get, html, path } from "./lib.js";

// Asked once, and not again with every change; version: when it is another, that is asked for.
export function useOnce(asked, version) {
	const [state, set] = useState({});
	useEffect(() => {
		if (!asked) return;
		const aborter = new AbortController();
		get(asked, aborter.signal).then((data) => set({ data }), (error) => error.name !== "AbortError" && set({ error }));
		return () => aborter.abort();
	}, [asked, version]);
	return state;
}

// marks: place => what stands over it.
export function Picture({ name, version, marks = () => null }) {
	const { data, error } = useOnce(path`definitions/${name}/places`, version);
	if (error || !data) return null;
	const share = (n, of) => `${((100 * n) / of).toFixed(3)}%`;
	return html`<div class="picture"><div class="drawn"><img src=${"api/v1/" + path`definitions/${name}/graph`} width=${data.width} height=${data.height} alt=${`the steps of ${name}, drawn`} />
		${data.places.map((p, i) => html`<span key=${i} class="spot" data-place=${p.name} style=${{ left: share(p.x, data.width), top: share(p.y, data.height), width: share(p.width, data.width), height: share(p.height, data.height) }}>${marks(p)}</span>`)}
	</div></div>`;
}
