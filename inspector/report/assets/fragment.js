// Plotly for the figures of a notebook's cells: that of the page, or the copy in this cell.
window.inspectorPlotly ??= async (packed) => {
  if (window.Plotly) return window.Plotly;
  const bytes = Uint8Array.from(atob(packed), (letter) => letter.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  const code = await new Response(stream).text();
  if (!window.Plotly) new Function("define", "module", "exports", code).call(window);
  return window.Plotly;
};
