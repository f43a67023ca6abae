"use strict";
// Pointing at a mention, or moving to it with the keyboard, lights up its chain and draws its links.
// Everything works for any number of documents in a page, and for those that come later: events are
// handled at the root, and the chains of a document are looked up when it is first touched.
(() => {
  const chains = new WeakMap(); // document → Map: cluster → mentions, each a list of its parts
  let lit = null; // what is lit up: { doc, cluster, mention, elements }
  let pinned = false; // whether the keyboard or a click holds it, so that the pointer may leave

  function chainsOf(doc) {
    let found = chains.get(doc);
    if (found) return found;
    found = new Map();
    const mentions = new Map();
    for (const part of doc.querySelectorAll(".text .mention[data-cluster]")) {
      const { cluster, span } = part.dataset;
      if (!found.has(cluster)) found.set(cluster, []);
      const key = cluster + ":" + span;
      // In a page of errors one mention stands on both sides, and links are not drawn.
      if (mentions.has(key)) mentions.get(key).push(part);
      else {
        const parts = [part];
        parts.block = part.closest(".block");
        mentions.set(key, parts);
        found.get(cluster).push(parts);
      }
    }
    chains.set(doc, found);
    return found;
  }

  function clear(next) {
    if (!lit) return;
    for (const element of lit.elements) element.classList.remove("same", "here");
    // From chain to chain the rest stays dim: to change all of a long text takes time.
    if (lit.doc !== next) lit.doc.querySelector(":scope > .text")?.classList.remove("dim");
    lit.doc.querySelector(".chain")?.remove();
    const status = lit.doc.querySelector(".status");
    if (status) status.textContent = "";
    lit = null;
  }

  function light(doc, cluster, mention) {
    if (lit && lit.doc === doc && lit.cluster === cluster && lit.mention === mention) return;
    clear(doc);
    const chain = chainsOf(doc).get(cluster) || [];
    const entity = doc.querySelector(`.entity[data-cluster="${cluster}"]`);
    lit = { doc, cluster, mention, chain, elements: new Set() };
    if (!doc.classList.contains("links")) {
      mark(chain.flat(), "same");
      return;
    }
    doc.querySelector(":scope > .text").classList.add("dim");
    const place = chain.findIndex((parts) => parts.includes(mention));
    draw();
    if (place >= 0) mark(chain[place], "here");
    tell(doc, entity, chain, place);
    if (!entity) return;
    mark([entity], "same");
    if (place >= 0) reveal(entity);
  }

  function mark(elements, name) {
    for (const element of elements) {
      element.classList.add(name);
      lit.elements.add(element);
    }
  }

  // Keep the entity in sight in its list, without moving the page.
  function reveal(entity) {
    const list = entity.closest(".entities");
    const inner = entity.getBoundingClientRect(), outer = list.getBoundingClientRect();
    if (inner.top < outer.top) list.scrollTop -= outer.top - inner.top;
    else if (inner.bottom > outer.bottom) list.scrollTop += inner.bottom - outer.bottom;
  }

  function percent(score) {
    const value = Number(score) * 100;
    return (value > 99 && value < 100 ? value.toFixed(1) : Math.round(value)) + " %";
  }

  function tell(doc, entity, chain, place) {
    const status = doc.querySelector(".status");
    if (!status || !entity) return;
    const name = entity.querySelector(".name").textContent;
    if (place < 0) {
      status.textContent = `${name}: ${chain.length} mentions`;
      return;
    }
    const [first] = chain[place];
    const told = [`${name}: mention ${place + 1} of ${chain.length}`];
    if (place > 0 && first.dataset.score) told.push(`link ${percent(first.dataset.score)}`);
    const turn = first.closest("[data-speaker]");
    if (turn) told.push(`said by ${turn.dataset.speaker}`);
    status.textContent = told.join(", ");
  }

  const SVG = "http://www.w3.org/2000/svg";
  function make(parent, name, attributes) {
    const element = document.createElementNS(SVG, name);
    for (const key in attributes) element.setAttribute(key, attributes[key]);
    parent.append(element);
    return element;
  }

  // Light up the chain and draw its links: each mention's to the one before it. Only what is in
  // sight is touched and measured, and more of it as the page scrolls; a link that leaves the window
  // is drawn to its edge. First everything is measured and then changed, since a change in between
  // would have the page laid out again.
  function draw() {
    if (!lit || !lit.doc.classList.contains("links")) return;
    const { doc, chain } = lit;
    const text = doc.querySelector(":scope > .text");
    const origin = text.getBoundingClientRect();
    const height = window.innerHeight;
    const blocks = new Map();
    const sides = chain.map(({ block }) => {
      if (!blocks.has(block)) {
        const box = block.getBoundingClientRect();
        blocks.set(block, box.bottom < -20 ? -1 : box.top > height + 20 ? 1 : 0);
      }
      return blocks.get(block);
    });
    const boxes = chain.map((parts, i) => (sides[i] ? null : boxOf(parts, origin)));
    chain.forEach((parts, i) => sides[i] || mark(parts, "same"));
    doc.querySelector(".chain")?.remove();
    const svg = document.createElementNS(SVG, "svg");
    const colour = [...chain[0]?.[0]?.classList ?? []].find((name) => /^c\d$/.test(name));
    svg.setAttribute("class", `chain ${colour}`);
    svg.setAttribute("aria-hidden", "true");
    const labels = [];
    for (let i = 1; i < chain.length; i++) {
      const before = boxes[i - 1], after = boxes[i];
      if (!before && !after) continue;
      const edge = (side) => {
        const x = before ? before.outX : after.x, y = side < 0 ? -30 : height + 30;
        return { x, outX: x, top: y - origin.top, bottom: y - origin.top };
      };
      make(svg, "path", { d: curve(before || edge(sides[i - 1]), after || edge(sides[i])) });
      if (after) {
        make(svg, "circle", { cx: after.x, cy: after.top, r: 2.5 });
        const { score } = chain[i][0].dataset;
        if (score) labels.push([after, percent(score)]);
      }
    }
    for (const [box, label] of labels) {
      const width = 10 + 6 * label.length;
      make(svg, "rect", { x: box.x - width / 2, y: box.top - 20, width, height: 15 });
      make(svg, "text", { x: box.x, y: box.top - 8.5 }).textContent = label;
    }
    text.append(svg);
  }

  // Where a mention begins and where it ends, in its text.
  function boxOf(parts, origin) {
    const lines = parts.flatMap((part) => [...part.getClientRects()]);
    const first = lines[0] || parts[0].getBoundingClientRect(), last = lines.at(-1) || first;
    const place = (box) => box.left - origin.left + Math.min(box.width / 2, 40);
    return {
      x: place(first), top: first.top - origin.top,
      outX: place(last), bottom: last.bottom - origin.top,
    };
  }

  // An arc over one line; else down from the earlier mention, along the gap above the later one's
  // line, and down to it, so that no text is crossed out.
  function curve(from, to) {
    const [x1, x2, y2] = [from.outX, to.x, to.top];
    if (Math.abs(from.bottom - to.bottom) < 8 || to.top < from.top) {
      const rise = Math.min(26, 8 + Math.abs(x2 - from.x) / 10);
      return `M${from.x} ${from.top} C${from.x} ${from.top - rise} ${x2} ${y2 - rise} ${x2} ${y2}`;
    }
    const gap = y2 - 12, turn = Math.sign(x2 - x1) * Math.min(8, Math.abs(x2 - x1) / 2);
    const down = Math.max(from.bottom, gap - 8);
    return (
      `M${x1} ${from.bottom} L${x1} ${down} Q${x1} ${gap} ${x1 + turn} ${gap} ` +
      `L${x2 - turn} ${gap} Q${x2} ${gap} ${x2} ${y2}`
    );
  }

  function lightFrom(element) {
    const mention = element.closest?.(".mention[data-cluster]");
    const entity = element.closest?.(".entity");
    const target = mention || entity;
    const doc = target?.closest(".document");
    if (!doc) return false;
    light(doc, target.dataset.cluster, mention);
    return true;
  }

  function goTo(parts) {
    const [first] = parts;
    first.focus({ preventScroll: true });
    first.scrollIntoView({ block: "center" });
    // Blocks on the way were not laid out, so the first try may have missed.
    requestAnimationFrame(() => first.scrollIntoView({ block: "center" }));
  }

  document.addEventListener("mouseover", (event) => {
    if (lightFrom(event.target)) pinned = false;
    else if (!pinned) clear();
  });
  document.addEventListener("focusin", (event) => {
    if (lightFrom(event.target)) pinned = true;
  });
  document.addEventListener("focusout", (event) => {
    if (!event.relatedTarget && pinned) pinned = false;
  });
  document.addEventListener("click", (event) => {
    const mention = event.target.closest(".mention[data-label]");
    if (mention?.tabIndex === 0) mention.focus({ preventScroll: true });
    const entity = event.target.closest(".entity");
    if (!entity) return;
    // The first click jumps to the first mention, the next one to the mention after it.
    const chain = chainsOf(entity.closest(".document")).get(entity.dataset.cluster) || [];
    const place = (Number(entity.dataset.place ?? -1) + 1) % chain.length;
    entity.dataset.place = place;
    if (chain.length) goTo(chain[place]);
  });

  const STEPS = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 };
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "Escape") {
      pinned = false;
      clear();
      if (document.activeElement?.closest(".mention, .entity")) document.activeElement.blur();
      return;
    }
    const mention = event.target.closest?.(".mention[data-cluster]");
    const entity = event.target.closest?.(".entity");
    let places, place;
    if (mention) {
      places = chainsOf(mention.closest(".document")).get(mention.dataset.cluster);
      place = places.findIndex((parts) => parts.includes(mention));
    } else if (entity) {
      const items = entity.closest(".entities").querySelectorAll("li:not([hidden]) .entity");
      places = [...items].map((item) => [item]);
      place = places.findIndex(([item]) => item === entity);
    } else return;
    if (event.key in STEPS) place += STEPS[event.key];
    else if (event.key === "Home") place = 0;
    else if (event.key === "End") place = places.length - 1;
    else return;
    event.preventDefault();
    place = Math.max(0, Math.min(places.length - 1, place));
    if (mention) goTo(places[place]);
    else places[place][0].focus();
  });

  document.addEventListener("input", (event) => {
    if (!event.target.matches(".filter")) return;
    const wanted = event.target.value.trim().toLowerCase();
    for (const item of event.target.closest(".side").querySelectorAll(".entities li"))
      item.hidden = !item.querySelector(".name").textContent.toLowerCase().includes(wanted);
    ready(event.target.closest(".document"));
  });

  // Tab reaches the list once; within it the arrows move.
  function ready(doc) {
    const items = doc.querySelectorAll(".entity");
    for (const item of items) item.tabIndex = -1;
    const first = doc.querySelector(".entities li:not([hidden]) .entity");
    if (first) first.tabIndex = 0;
    // In a long text this takes a while: better now than when the pointer comes.
    (window.requestIdleCallback || setTimeout)(() => doc.isConnected && chainsOf(doc));
  }
  for (const doc of document.querySelectorAll(".document.links")) ready(doc);

  let waiting = false;
  function redraw() {
    if (waiting) return;
    waiting = true;
    requestAnimationFrame(() => {
      waiting = false;
      draw();
    });
  }
  addEventListener("scroll", redraw, { passive: true });
  addEventListener("resize", redraw, { passive: true });

  // The page of a server: what is typed is sent when the typing pauses, one request at a time.
  const typed = document.getElementById("typed");
  if (!typed) return;
  const speakers = document.getElementById("speakers");
  const progress = document.getElementById("progress");
  const result = document.getElementById("result");
  let timer, busy = false, again = false;

  async function ask() {
    if (busy) {
      again = true;
      return;
    }
    busy = true;
    again = false;
    progress.className = "";
    progress.textContent = "Reading …";
    const begin = performance.now();
    try {
      const response = await fetch("resolve", {
        method: "POST",
        headers: { "Content-Type": "application/json" },
        body: JSON.stringify({ text: typed.value, speakers: speakers.checked }),
      });
      const answer = await response.json();
      if (!response.ok) throw new Error(answer.error);
      clear();
      result.innerHTML = answer.html; // made and escaped by the server
      for (const doc of result.querySelectorAll(".document.links")) ready(doc);
      progress.textContent = `${((performance.now() - begin) / 1000).toFixed(1)} s`;
    } catch (error) {
      progress.className = "failed";
      progress.textContent =
        error instanceof TypeError ? "The server does not answer. Is it still running?" : error.message;
    }
    busy = false;
    if (again) ask();
  }
  typed.addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(ask, 350);
  });
  speakers.addEventListener("change", ask);
})();
