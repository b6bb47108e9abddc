//! Line charts as SVG, for papers and pages: axes with round numbers, linear or logarithmic, a legend, and nothing that has to
//! be loaded.
//!
//! ```
//! use mayhap_eval::{Axis, Chart, Scale, Series};
//!
//! let bits = (1..=10).map(|k| (0.5f64.powi(k), 1.44 * f64::from(k))).collect();
//! let chart = Chart {
//!     title: "A Bloom filter".into(),
//!     x: Axis { label: "false-positive rate".into(), scale: Scale::Logarithmic },
//!     y: Axis { label: "bits per key".into(), scale: Scale::Linear },
//!     series: vec![Series::line("bloom", bits)],
//!     landmarks: Vec::new(),
//! };
//! let svg = chart.to_svg()?;
//! assert!(svg.starts_with("<svg ") && svg.contains(">bloom</text>"));
//! # Ok::<(), mayhap_eval::NoChart>(())
//! ```

use std::fmt::{self, Write};

/// Points over two axes.
#[derive(Clone, Debug, PartialEq)]
pub struct Chart {
    /// Above it.
    pub title: String,
    /// From left to right.
    pub x: Axis,
    /// From below to above.
    pub y: Axis,
    /// What is drawn, in the order of the legend.
    pub series: Vec<Series>,
    /// Numbers of the x axis that have a name, such as the size of a cache.
    pub landmarks: Vec<(f64, String)>,
}

/// What is measured along one side.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Axis {
    /// With its unit.
    pub label: String,
    /// How numbers are spread.
    pub scale: Scale,
}

/// How numbers are spread along an axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scale {
    /// Evenly, with 0.
    Linear,
    /// Each ten times the one before. Numbers must be above 0.
    Logarithmic,
}

/// Some points of one kind.
#[derive(Clone, Debug, PartialEq)]
pub struct Series {
    /// In the legend.
    pub name: String,
    /// In the order in which they are joined.
    pub points: Vec<(f64, f64)>,
    /// How they are drawn.
    pub style: Style,
}

/// How a series is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    /// A line with marks.
    Line,
    /// A dashed line without: a bound, or what theory says.
    Bound,
    /// Marks alone: what was measured.
    Marks,
}

impl Series {
    /// A line with marks.
    #[must_use]
    pub fn line(name: impl Into<String>, points: Vec<(f64, f64)>) -> Self {
        Self { name: name.into(), points, style: Style::Line }
    }

    /// A dashed line: a bound, or what theory says.
    #[must_use]
    pub fn bound(name: impl Into<String>, points: Vec<(f64, f64)>) -> Self {
        Self { name: name.into(), points, style: Style::Bound }
    }

    /// Marks alone.
    #[must_use]
    pub fn marks(name: impl Into<String>, points: Vec<(f64, f64)>) -> Self {
        Self { name: name.into(), points, style: Style::Marks }
    }
}

/// There is nothing to draw, or it cannot be drawn.
#[derive(Clone, Debug, PartialEq)]
pub enum NoChart {
    /// No series has a point.
    Empty,
    /// A number is not finite, or not above 0 on a logarithmic axis.
    Point {
        /// Of which series.
        series: String,
        /// The point.
        point: (f64, f64),
    },
}

impl fmt::Display for NoChart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => f.write_str("there is no point to draw"),
            Self::Point { series, point: (x, y) } => {
                write!(f, "the point ({x}, {y}) of {series} has no place on the axes")
            }
        }
    }
}

impl std::error::Error for NoChart {}

const WIDTH: f64 = 860.0;
const HEIGHT: f64 = 520.0;
const LEFT: f64 = 72.0;
const RIGHT: f64 = 200.0;
const ABOVE: f64 = 48.0;
const BELOW: f64 = 60.0;

/// Told apart also by those who do not see red from green: the colours of Okabe and Ito (2008), then darker ones.
const COLOURS: [&str; 12] = [
    "#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000", "#7f3c8d", "#8c6d31",
    "#3d5a80", "#a1343c", "#5b8c5a",
];
/// Series of one colour have different marks.
const MARKS: usize = 4;

impl Chart {
    /// The chart as a file.
    ///
    /// # Errors
    /// [`NoChart`] if there is nothing to draw, or a point has no place.
    pub fn to_svg(&self) -> Result<String, NoChart> {
        for series in &self.series {
            for &(x, y) in &series.points {
                if !self.x.scale.takes(x) || !self.y.scale.takes(y) {
                    return Err(NoChart::Point { series: series.name.clone(), point: (x, y) });
                }
            }
        }
        let all = || self.series.iter().flat_map(|series| series.points.iter().copied());
        let x = Ruler::of(all().map(|(x, _)| x), self.x.scale, LEFT, WIDTH - RIGHT).ok_or(NoChart::Empty)?;
        let y =
            Ruler::of(all().map(|(_, y)| y), self.y.scale, HEIGHT - BELOW, ABOVE).ok_or(NoChart::Empty)?;
        let mut svg = String::new();
        self.draw(&x, &y, &mut svg).expect("a string takes every character");
        Ok(svg)
    }

    fn draw(&self, x: &Ruler, y: &Ruler, svg: &mut String) -> fmt::Result {
        writeln!(
            svg,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" font-family=\"sans-serif\" \
             font-size=\"13\">"
        )?;
        writeln!(svg, "<rect width=\"100%\" height=\"100%\" fill=\"white\"/>")?;
        let middle = (LEFT + WIDTH - RIGHT) / 2.0;
        let title = escaped(&self.title);
        writeln!(
            svg,
            "<text x=\"{middle}\" y=\"26\" text-anchor=\"middle\" font-size=\"16\">{title}</text>"
        )?;
        let (bottom, right) = (HEIGHT - BELOW, WIDTH - RIGHT);
        for (value, text) in x.ticks() {
            let at = x.place(value);
            writeln!(svg, "<path d=\"M{at:.1} {bottom}V{ABOVE}\" stroke=\"#ddd\"/>")?;
            writeln!(
                svg,
                "<text x=\"{at:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{text}</text>",
                bottom + 18.0
            )?;
        }
        for (value, text) in y.ticks() {
            let at = y.place(value);
            writeln!(svg, "<path d=\"M{LEFT} {at:.1}H{right}\" stroke=\"#ddd\"/>")?;
            let (left, low) = (LEFT - 8.0, at + 4.5);
            writeln!(svg, "<text x=\"{left}\" y=\"{low:.1}\" text-anchor=\"end\">{text}</text>")?;
        }
        writeln!(svg, "<path d=\"M{LEFT} {ABOVE}V{bottom}H{right}\" fill=\"none\" stroke=\"#333\"/>")?;
        let (label, under) = (escaped(&self.x.label), HEIGHT - 16.0);
        writeln!(svg, "<text x=\"{middle}\" y=\"{under}\" text-anchor=\"middle\">{label}</text>")?;
        let (label, centre) = (escaped(&self.y.label), (ABOVE + bottom) / 2.0);
        writeln!(
            svg,
            "<text transform=\"translate(18 {centre}) rotate(-90)\" text-anchor=\"middle\">{label}</text>"
        )?;
        for (value, name) in self.landmarks.iter().filter(|(value, _)| x.has(*value)) {
            let at = x.place(*value);
            writeln!(
                svg,
                "<path d=\"M{at:.1} {bottom}V{ABOVE}\" stroke=\"#888\" stroke-dasharray=\"2 3\"/>"
            )?;
            let (name, high) = (escaped(name), ABOVE - 5.0);
            writeln!(
                svg,
                "<text x=\"{at:.1}\" y=\"{high}\" text-anchor=\"middle\" fill=\"#666\">{name}</text>"
            )?;
        }
        for (number, series) in self.series.iter().enumerate() {
            let places: Vec<(f64, f64)> =
                series.points.iter().map(|&(a, b)| (x.place(a), y.place(b))).collect();
            series.draw(number, &places, svg)?;
            let line = ABOVE + 8.0 + 20.0 * number as f64;
            let (from, to) = (right + 16.0, right + 44.0);
            series.draw(number, &[(from, line), (to, line)], svg)?;
            let name = escaped(&series.name);
            writeln!(svg, "<text x=\"{}\" y=\"{}\">{name}</text>", to + 8.0, line + 4.5)?;
        }
        writeln!(svg, "</svg>")
    }
}

impl Series {
    fn draw(&self, number: usize, places: &[(f64, f64)], svg: &mut String) -> fmt::Result {
        let colour = COLOURS[number % COLOURS.len()];
        if self.style != Style::Marks && places.len() > 1 {
            let dashes = if self.style == Style::Bound { " stroke-dasharray=\"6 4\"" } else { "" };
            let points: Vec<String> = places.iter().map(|(x, y)| format!("{x:.1},{y:.1}")).collect();
            let points = points.join(" ");
            writeln!(
                svg,
                "<polyline points=\"{points}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"1.8\"{dashes}/>"
            )?;
        }
        if self.style == Style::Bound {
            return Ok(());
        }
        for (x, y) in places {
            match number / COLOURS.len() % MARKS {
                0 => writeln!(svg, "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"3\" fill=\"{colour}\"/>")?,
                1 => {
                    let (left, top) = (x - 3.0, y - 3.0);
                    writeln!(
                        svg,
                        "<rect x=\"{left:.1}\" y=\"{top:.1}\" width=\"6\" height=\"6\" fill=\"{colour}\"/>"
                    )?;
                }
                2 => writeln!(svg, "<path d=\"M{x:.1} {y:.1}m-4 3h8l-4 -7z\" fill=\"{colour}\"/>")?,
                _ => writeln!(svg, "<path d=\"M{x:.1} {y:.1}m0 -4l4 4l-4 4l-4 -4z\" fill=\"{colour}\"/>")?,
            }
        }
        Ok(())
    }
}

impl Scale {
    fn takes(self, value: f64) -> bool {
        value.is_finite() && (self == Self::Linear || value > 0.0)
    }
}

/// From numbers to places.
struct Ruler {
    scale: Scale,
    least: f64,
    most: f64,
    start: f64,
    end: f64,
}

impl Ruler {
    /// For these numbers, between two places; `None` if there are none.
    fn of(values: impl Iterator<Item = f64>, scale: Scale, start: f64, end: f64) -> Option<Self> {
        let (mut least, mut most) = values
            .fold((f64::INFINITY, f64::NEG_INFINITY), |(least, most), value| {
                (least.min(value), most.max(value))
            });
        if !least.is_finite() {
            return None;
        }
        match scale {
            Scale::Linear => {
                (least, most) = (least.min(0.0), most.max(0.0));
                if least == most {
                    most += 1.0;
                }
                let step = step(most - least);
                (least, most) = ((least / step).floor() * step, (most / step).ceil() * step);
            }
            Scale::Logarithmic if most / least > FINE => {
                (least, most) = (10f64.powf(least.log10().floor()), 10f64.powf(most.log10().ceil()));
            }
            Scale::Logarithmic => (least, most) = fine(least, most),
        }
        Some(Self { scale, least, most, start, end })
    }

    fn has(&self, value: f64) -> bool {
        (self.least..=self.most).contains(&value)
    }

    fn place(&self, value: f64) -> f64 {
        let share = match self.scale {
            Scale::Linear => (value - self.least) / (self.most - self.least),
            Scale::Logarithmic => (value / self.least).log10() / (self.most / self.least).log10(),
        };
        self.start + share * (self.end - self.start)
    }

    /// Round numbers, and how they are written.
    fn ticks(&self) -> Vec<(f64, String)> {
        match self.scale {
            Scale::Linear => {
                let step = step(self.most - self.least);
                let count = ((self.most - self.least) / step).round() as i64;
                let first = (self.least / step).round();
                (0..=count)
                    .map(|number| (first + number as f64) * step)
                    .map(|value| (value, short(value)))
                    .collect()
            }
            Scale::Logarithmic if self.most / self.least <= 10.0 * FINE => {
                let (first, last) = (self.least.log10().floor() as i32, self.most.log10().ceil() as i32);
                (first..=last)
                    .flat_map(|power| FINE_STEPS.map(|times| times * 10f64.powi(power)))
                    // A little noise behind the last digit is no reason to leave out an end.
                    .filter(|value| (self.least * 0.999..=self.most * 1.001).contains(value))
                    .map(|value| (value, short(value)))
                    .collect()
            }
            Scale::Logarithmic => {
                let (first, last) = (self.least.log10().round() as i32, self.most.log10().round() as i32);
                // At most ten or so.
                let step = ((last - first) / 10 + 1) as usize;
                (first..=last).step_by(step).map(|power| (10f64.powi(power), power_of_ten(power))).collect()
            }
        }
    }
}

/// Up to this ratio of the greatest to the least number a logarithmic axis has more than powers of ten.
const FINE: f64 = 500.0;
const FINE_STEPS: [f64; 3] = [1.0, 2.0, 5.0];

/// The nearest of 1, 2 and 5 times a power of ten that have these numbers between them.
fn fine(least: f64, most: f64) -> (f64, f64) {
    let steps = |value: f64| {
        let power = 10f64.powf(value.log10().floor());
        [1.0, 2.0, 5.0, 10.0].map(|times| times * power)
    };
    let below = steps(least).into_iter().rev().find(|&step| step <= least * 1.000_001).unwrap_or(least);
    let above = steps(most).into_iter().find(|&step| step >= most * 0.999_999).unwrap_or(most);
    if below < above { (below, above) } else { (below, 2.0 * above) }
}

/// 1, 2 or 5 times a power of ten, of which there are five to ten in the range.
fn step(range: f64) -> f64 {
    let power = 10f64.powf((range / 5.0).log10().floor());
    [5.0, 2.0, 1.0].into_iter().map(|times| times * power).find(|step| range / step >= 5.0).unwrap_or(power)
}

fn short(value: f64) -> String {
    // Sums of steps like 0.1 have noise behind the last digit.
    let text = format!("{value:.6}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    if text == "-0" { "0".into() } else { text.into() }
}

fn power_of_ten(power: i32) -> String {
    match power {
        -3..=4 => short(10f64.powi(power)),
        _ => format!("10<tspan dy=\"-5\" font-size=\"10\">{power}</tspan>"),
    }
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chart(points: Vec<(f64, f64)>, scale: Scale) -> Chart {
        let axis = || Axis { label: "<a & b>".into(), scale };
        Chart {
            title: "T".into(),
            x: axis(),
            y: axis(),
            series: vec![Series::line("s", points)],
            landmarks: Vec::new(),
        }
    }

    #[test]
    fn points_are_where_they_belong() {
        let ruler = Ruler::of([0.001, 1.0].into_iter(), Scale::Logarithmic, 0.0, 300.0).unwrap();
        assert!((ruler.place(0.01) - 100.0).abs() < 1e-9);
        let ruler = Ruler::of([3.0, 9.7].into_iter(), Scale::Linear, 100.0, 0.0).unwrap();
        assert_eq!((ruler.place(0.0), ruler.place(10.0)), (100.0, 0.0));
        let texts: Vec<String> = ruler.ticks().into_iter().map(|(_, text)| text).collect();
        assert_eq!(texts, ["0", "2", "4", "6", "8", "10"]);
    }

    #[test]
    fn a_short_logarithmic_axis_has_more_than_powers_of_ten() {
        let ruler = Ruler::of([3.3, 76.0].into_iter(), Scale::Logarithmic, 0.0, 100.0).unwrap();
        let texts: Vec<String> = ruler.ticks().into_iter().map(|(_, text)| text).collect();
        assert_eq!(texts, ["2", "5", "10", "20", "50", "100"]);
        assert!(ruler.has(50.0) && !ruler.has(1.0));
    }

    #[test]
    fn what_cannot_be_drawn_is_told() {
        assert_eq!(chart(Vec::new(), Scale::Linear).to_svg(), Err(NoChart::Empty));
        for (x, scale) in
            [(f64::NAN, Scale::Linear), (f64::INFINITY, Scale::Linear), (0.0, Scale::Logarithmic)]
        {
            let refused = chart(vec![(x, 1.0)], scale).to_svg();
            assert!(matches!(refused, Err(NoChart::Point { .. })), "{x}: {refused:?}");
        }
    }

    #[test]
    fn one_point_and_equal_points_are_drawn() {
        for scale in [Scale::Linear, Scale::Logarithmic] {
            for points in [vec![(1.0, 1.0)], vec![(5.0, 5.0), (5.0, 5.0)]] {
                let svg = chart(points, scale).to_svg().unwrap();
                assert!(!svg.contains("NaN") && !svg.contains("inf"), "{svg}");
                assert!(svg.contains("&lt;a &amp; b&gt;"));
            }
        }
    }
}
