/* The editor of a policy: the numbers of its lines, the way from an error to its line,
   and a file in place of the text. The page works without it. */
"use strict";
(() => {
  const field = document.getElementById("id_document");
  const margin = document.getElementById("numbers");
  const file = document.getElementById("id_file");
  if (!field || !margin || !file) return;
  const box = field.parentNode;
  let drawn = "";
  const draw = () => {
    const lines = field.value.split("\n");
    const errors = document.querySelectorAll(document.querySelector("#check ul, #check b") ? "#check [data-line]" : "#problem [data-line]");
    const wrong = new Set([...errors].map((node) => Number(node.dataset.line)));
    field.rows = lines.length;
    field.cols = Math.max(...lines.map((line) => line.length)) + 1;
    const now = `${lines.length} ${[...wrong]}`;
    if (now === drawn) return;
    drawn = now;
    const parts = [];
    let plain = "";
    for (let line = 1; line <= lines.length; line += 1) {
      if (!wrong.has(line)) { plain += `${line}\n`; continue; }
      const mark = document.createElement("u");
      mark.id = `line-${line}`;
      mark.textContent = line;
      parts.push(plain, mark);
      plain = "\n";
    }
    margin.replaceChildren(...parts, plain);
  };
  const go = (line) => {
    const lines = field.value.split("\n");
    const from = lines.slice(0, line - 1).reduce((sum, text) => sum + text.length + 1, 0);
    field.focus({ preventScroll: true });
    field.setSelectionRange(from, from + (lines[line - 1] || "").length);
    box.scrollIntoView({ block: "nearest" });
    box.scrollTop = (line - 1) * 20 - box.clientHeight / 3;
    box.scrollLeft = 0;
  };
  document.addEventListener("click", (event) => {
    const link = event.target.closest("a[data-line]");
    if (!link) return;
    event.preventDefault();
    go(Number(link.dataset.line));
  });
  field.addEventListener("input", draw);
  document.body.addEventListener("htmx:afterSwap", draw);
  /* Inserted as if typed, so that the browser's undo brings the former text back. What
     is no text goes to the server, which says so. */
  file.addEventListener("change", async () => {
    const [chosen] = file.files;
    if (!chosen || chosen.size > 2 ** 21) return;
    try {
      const text = new TextDecoder("utf-8", { fatal: true }).decode(await chosen.arrayBuffer());
      if (text.includes("\0")) return;
      field.focus();
      field.select();
      if (!document.execCommand("insertText", false, text)) {
        field.value = text;
        field.dispatchEvent(new Event("input", { bubbles: true }));
      }
      field.setSelectionRange(0, 0);
      box.scrollTop = 0;
      file.value = "";
    } catch { /* The server names the fault. */ }
  });
  draw();
  const first = margin.querySelector("[id]");
  if (first) box.scrollTop = first.offsetTop - box.clientHeight / 3;
})();
