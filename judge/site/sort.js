for (const table of document.querySelectorAll("table[data-sort]")) {
  const body = table.tBodies[0];
  const heads = [...table.tHead.rows[0].cells];
  const number = text => (/^[-+]?\d+(\.\d+)?(\/\d+.*)?$/.test(text) ? parseFloat(text) : NaN);
  heads.forEach((head, column) => {
    const name = head.textContent.trim();
    const button = document.createElement("button");
    button.type = "button";
    button.setAttribute("aria-label", table.dataset.sort + " " + name);
    head.append(button);
    button.addEventListener("click", () => {
      const up = head.getAttribute("aria-sort") !== "ascending";
      for (const other of heads) other.removeAttribute("aria-sort");
      head.setAttribute("aria-sort", up ? "ascending" : "descending");
      const keyed = [...body.rows].map((row, place) => {
        const text = row.cells[column].textContent.trim();
        return {row, place, text, value: number(text)};
      });
      const empty = one => one.text === "" || one.text === "–";
      const words = keyed.some(one => !empty(one) && isNaN(one.value));
      keyed.sort((a, b) => {
        if (empty(a) !== empty(b)) return empty(a) ? 1 : -1;
        const both = !isNaN(a.value) && !isNaN(b.value);
        const some = isNaN(a.value) - isNaN(b.value);
        if (words && some) return some;
        const by = both ? a.value - b.value : a.text.localeCompare(b.text);
        return (up ? by : -by) || a.place - b.place;
      });
      body.append(...keyed.map(one => one.row));
    });
  });
}
