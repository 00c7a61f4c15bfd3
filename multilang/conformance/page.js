// What the page of one program does with keys and buttons. Without it, the page can be read and opened case by case.
"use strict";
const cases = [...document.querySelectorAll("details.case")];
const buttons = [...document.querySelectorAll(".bar button[data-show]")];
const search = document.querySelector("#search");
const shown = () => cases.filter((each) => !each.hidden);

function filter() {
  const wanted = buttons.find((each) => each.getAttribute("aria-pressed") === "true").dataset.show;
  const text = search.value.toLowerCase();
  for (const each of cases) {
    const fits = wanted === "all" || each.dataset.word === wanted;
    each.hidden = !fits || !each.textContent.toLowerCase().includes(text);
  }
  for (const section of document.querySelectorAll("section")) {
    section.hidden = [...section.querySelectorAll("details.case")].every((each) => each.hidden);
  }
}

function press(button) {
  for (const each of buttons) each.setAttribute("aria-pressed", String(each === button));
  filter();
}

function goTo(each) {
  if (!each) return;
  each.hidden = false;
  each.querySelector("summary").focus();
  each.scrollIntoView({ block: "center" });
}

function move(step, fits = () => true) {
  const all = shown();
  const at = all.indexOf(document.activeElement?.closest("details.case"));
  let next = at < 0 && step < 0 ? all.length : at;
  do next += step; while (all[next] && !fits(all[next]));
  goTo(all[next]);
}

function fromAddress() {
  const named = location.hash && document.getElementById(decodeURIComponent(location.hash.slice(1)));
  if (!named?.matches("details.case")) return;
  named.open = true;
  named.closest("section").hidden = false;
  goTo(named);
}

const KEYS = {
  j: () => move(1),
  k: () => move(-1),
  n: () => move(1, (each) => ["failed", "warning"].includes(each.dataset.word)),
  "/": () => search.focus(),
  a: () => press(buttons[0]),
  e: () => {
    const open = shown().some((each) => !each.open);
    for (const each of shown()) each.open = open;
  },
};

for (const button of buttons) button.addEventListener("click", () => press(button));
search.addEventListener("input", filter);
addEventListener("hashchange", fromAddress);
addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.target === search) {
    if (event.key === "Escape") {
      search.value = "";
      filter();
      search.blur();
    }
  } else if (KEYS[event.key]) {
    event.preventDefault();
    KEYS[event.key]();
  }
});
fromAddress();
