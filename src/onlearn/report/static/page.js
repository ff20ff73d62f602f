(function () {
  "use strict";
  // Each chart is drawn again by uPlot, for those who hover and zoom; without it the SVG stays.
  var charts = JSON.parse(document.getElementById("chart-data").textContent);
  var drawn = [];
  function colour(name) { return getComputedStyle(document.documentElement).getPropertyValue(name).trim(); }
  function short(value) {
    if (value == null) return "–";
    var size = Math.abs(value);
    if (size >= 1e6) return +(value / 1e6).toPrecision(3) + "M";
    if (size >= 1e4) return +(value / 1e3).toPrecision(3) + "k";
    return String(+value.toPrecision(4));
  }
  function axis(label, log, size) {
    return {
      stroke: function () { return colour("--soft"); }, label: label, labelSize: 18, labelGap: 2, labelFont: "13px system-ui, sans-serif",
      font: "12px system-ui, sans-serif", size: size,
      grid: { stroke: function () { return colour("--grid"); }, width: 1 }, ticks: { show: false },
      filter: function (plot, splits) { return splits; },
      splits: log ? function (plot, at, low, high) { return decades(low, high); } : undefined,
      values: function (plot, splits) { return splits.map(short); }
    };
  }
  // Ticks of a logarithmic axis: powers of ten; where these are few, 2 and 5 times them, too.
  function decades(low, high) {
    function multiples(of, every) {
      var found = [];
      for (var k = Math.floor(Math.log10(low)); k <= Math.ceil(Math.log10(high)); k += every) {
        of.forEach(function (m) { var tick = +(m * Math.pow(10, k)).toPrecision(3); if (tick >= low * 0.999 && tick <= high * 1.001) found.push(tick); });
      }
      return found;
    }
    var tens = multiples([1], 1);
    if (tens.length > 7) return multiples([1], Math.ceil(tens.length / 7));
    if (tens.length > 2) return tens;
    var more = multiples([1, 2, 5], 1);
    return more.length > 1 ? more : multiples([1, 1.5, 2, 3, 4, 5, 6, 7, 8, 9], 1);
  }
  function series(one) {
    var guide = one.style === "guide";
    var made = {
      label: one.name, spanGaps: true, alpha: one.faint ? 0.5 : 1, width: one.faint || guide ? 1.3 : 2.2,
      stroke: function () { return colour(guide ? "--soft" : "--c" + one.place); },
      dash: guide ? [4, 4] : one.dash,
      points: { show: false }
    };
    if (one.style === "steps") made.paths = uPlot.paths.stepped({ align: 1 });
    if (one.style === "points") made.paths = function () { return null; };
    return made;
  }
  function options(chart, width, readout) {
    return {
      width: width, height: Math.round(Math.min(340, Math.max(230, width * 0.62))),
      padding: [10, 14, 0, 0], legend: { show: false },
      scales: {
        x: { time: false, distr: chart.xLog ? 3 : 1, log: 10, range: zoomable(chart.xRange) },
        y: { distr: chart.yLog ? 3 : 1, log: 10, range: function () { return chart.yRange; } }
      },
      axes: [axis(chart.xLabel, chart.xLog, 26), axis(chart.yLabel, chart.yLog, 46)],
      series: [{ label: chart.xLabel }].concat(chart.series.map(series)),
      cursor: { drag: { x: true, y: false, uni: 20 }, points: { size: 7 } },
      hooks: { setCursor: [function (plot) { tell(plot, chart, readout); }], draw: [function (plot) { uprights(plot, chart); markers(plot, chart); }] }
    };
  }
  function uprights(plot, chart) {
    var pen = plot.ctx, box = plot.bbox;
    chart.uprights.forEach(function (x) {
      var at = plot.valToPos(x, "x", true);
      if (at < box.left || at > box.left + box.width) return;
      pen.save();
      pen.strokeStyle = colour("--soft"); pen.lineWidth = 1.3 * devicePixelRatio;
      pen.setLineDash([4 * devicePixelRatio, 4 * devicePixelRatio]);
      pen.beginPath(); pen.moveTo(at, box.top); pen.lineTo(at, box.top + box.height); pen.stroke();
      pen.restore();
    });
  }
  // The same markers as in the drawings: series are told apart by them, not by colour alone.
  function markers(plot, chart) {
    var pen = plot.ctx, box = plot.bbox;
    pen.save();
    pen.beginPath(); pen.rect(box.left - 8, box.top - 8, box.width + 16, box.height + 16); pen.clip();
    chart.series.forEach(function (one) {
      if (one.faint || one.style === "guide" || one.style === "steps") return;
      var at = [];
      one.y.forEach(function (y, k) {
        if (y == null) return;
        var x = plot.valToPos(chart.x[k], "x", true), place = plot.valToPos(y, "y", true);
        if (isFinite(x) && isFinite(place) && x >= box.left - 1 && x <= box.left + box.width + 1) at.push([x, place]);
      });
      var size = (one.style !== "points" ? 3.4 : at.length > 3 ? 2.4 : 5) * devicePixelRatio;
      if (one.style === "line" && at.length > 24) {
        var step = at.length / 16, some = [];
        for (var k = 0; k < 16; k++) some.push(at[Math.min(at.length - 1, Math.floor((k + (one.place % 4) / 4) * step))]);
        at = some;
      }
      pen.fillStyle = colour("--c" + one.place);
      at.forEach(function (point) { pen.fill(shape(one.place % 5, point[0], point[1], size)); });
    });
    pen.restore();
  }
  function shape(kind, x, y, s) {
    var path = new Path2D();
    if (kind === 0) path.arc(x, y, s, 0, 2 * Math.PI);
    else if (kind === 1) path.rect(x - s, y - s, 2 * s, 2 * s);
    else {
      var corners = kind === 2 ? [[0, -1.4], [1.4, 0], [0, 1.4], [-1.4, 0]] : kind === 3 ? [[0, -1.2], [1.2, 0.9], [-1.2, 0.9]] : [[0, 1.2], [1.2, -0.9], [-1.2, -0.9]];
      corners.forEach(function (c, k) { path[k ? "lineTo" : "moveTo"](x + c[0] * s, y + c[1] * s); });
      path.closePath();
    }
    return path;
  }
  function zoomable(whole) {
    return function (plot, low, high) {
      var all = plot.data[0], first = all[0], last = all[all.length - 1];
      return low == null || (low <= first && high >= last) ? whole : [low, high];
    };
  }
  function tell(plot, chart, readout) {
    var at = plot.cursor.idx;
    if (at == null) { readout.textContent = ""; return; }
    var parts = [chart.xLabel.replace(" (log)", "") + " " + short(chart.x[at])];
    chart.series.forEach(function (one) {
      if (one.style !== "guide" && one.y[at] != null && parts.length < 9) parts.push(one.name + " " + short(one.y[at]));
    });
    readout.textContent = parts.join(" · ");
  }
  function start(figure) {
    var chart = charts[figure.dataset.chart], place = figure.querySelector(".plot");
    if (!chart || !chart.x.length || !place.clientWidth) return;
    var readout = document.createElement("div");
    readout.className = "readout";
    readout.setAttribute("aria-hidden", "true");
    var holder = document.createElement("div");
    holder.setAttribute("aria-hidden", "true");
    place.appendChild(holder);
    var width = place.clientWidth;
    var plot = new uPlot(options(chart, width, readout), [chart.x].concat(chart.series.map(function (one) { return one.y; })), holder);
    place.after(readout);
    figure.classList.add("live");
    drawn.push({ plot: plot, place: place });
  }
  document.querySelectorAll("figure.chart").forEach(function (figure) {
    try { start(figure); } catch (error) { figure.classList.remove("live"); console.error(error); }
  });
  window.addEventListener("resize", function () {
    drawn.forEach(function (one) {
      var width = one.place.clientWidth;
      if (width) one.plot.setSize({ width: width, height: Math.round(Math.min(340, Math.max(230, width * 0.62))) });
    });
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", function () {
    drawn.forEach(function (one) { one.plot.redraw(false); });
  });
})();
