(() => {
  const box = document.getElementById("search"), status = document.getElementById("found");
  const plain = text => text.normalize("NFKC").toUpperCase().toLowerCase().replaceAll("ς", "σ");
  const rows = [...document.querySelectorAll("[data-text]")];
  const sections = [...document.querySelectorAll(".dataset")];
  const look = () => {
    const words = plain(box.value).split(/\s+/).filter(Boolean);
    let count = 0;
    for (const row of rows) {
      const text = row.dataset.text + " " + row.closest(".dataset").dataset.columns;
      const has = words.every(word => text.includes(word));
      count += has;
      row.hidden = words.length ? !has : "older" in row.dataset;
    }
    for (const section of sections)
      section.hidden = (words.length > 0 || "other" in section.dataset)
        && !section.querySelector("[data-text]:not([hidden])");
    status.textContent = words.length ? `${count} ${count === 1 ? "match" : "matches"}` : "";
  };
  box.addEventListener("input", () => {
    history.replaceState(null, "", box.value ? "#" + encodeURIComponent(box.value) : "#");
    look();
  });
  const follow = () => {
    try { box.value = decodeURIComponent(location.hash.slice(1)); }
    catch { box.value = ""; }  // a malformed link
    look();
  };
  addEventListener("hashchange", follow);
  box.closest("p").hidden = false;
  follow();
})();
