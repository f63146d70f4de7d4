//! Prose as wide as a screen. Tables, code, headings and comments stay as they are: nobody wraps them without changing them.
//!
//! What a page says is the same afterwards, which is not believed but compared, by a parser of Markdown.

use anyhow::{Result, ensure};
use pulldown_cmark::{Event, Options, Parser};

/// How wide prose is made.
const WIDTH: usize = 100;

/// How wide prose may be until a check refuses it.
pub const WIDEST: usize = 160;

/// The page with every paragraph that has a line wider than [`WIDTH`] filled anew.
pub fn wrapped(page: &str) -> Result<String> {
    let lines: Vec<&str> = page.lines().collect();
    let mut text = String::with_capacity(page.len());
    let mut at = 0;
    for (start, end) in paragraphs(&lines) {
        lines[at..start].iter().for_each(|line| push(&mut text, line));
        let (before, mut after) = (lines[start..end].join("\n"), String::new());
        fill(&lines[start..end], &mut after);
        // What cannot be wrapped without saying something else stays as wide as it is.
        let same = said(&before) == said(&after);
        text.push_str(if same { after.trim_end_matches('\n') } else { &before });
        text.push('\n');
        at = end;
    }
    lines[at..].iter().for_each(|line| push(&mut text, line));
    if !page.ends_with('\n') {
        text.pop();
    }
    ensure!(said(page) == said(&text), "wrapping changes what the page says");
    Ok(text)
}

/// The numbers of lines of prose that are wider than [`WIDEST`].
pub fn too_wide(page: &str) -> Vec<usize> {
    let lines: Vec<&str> = page.lines().collect();
    let prose = paragraphs(&lines).into_iter().flat_map(|(start, end)| start..end);
    prose.filter(|line| width(lines[*line]) > WIDEST).map(|line| line + 1).collect()
}

fn push(text: &mut String, line: &str) {
    text.push_str(line);
    text.push('\n');
}

fn width(line: &str) -> usize {
    line.chars().count()
}

/// First lines and ends of what can be filled: paragraphs, and items of lists.
fn paragraphs(lines: &[&str]) -> Vec<(usize, usize)> {
    let mut found = Vec::new();
    let mut start = None;
    let mut fence: Option<&str> = None;
    for (number, line) in lines.iter().enumerate() {
        let trimmed = line.trim_start();
        let mark = ["```", "~~~"].into_iter().find(|mark| trimmed.starts_with(mark));
        let is_prose = match fence {
            Some(open) => {
                if mark == Some(open) {
                    fence = None;
                }
                false
            }
            None => {
                fence = mark;
                mark.is_none() && is_prose(line, start.is_some())
            }
        };
        if (!is_prose || marker(line) > 0)
            && let Some(start) = start.take()
        {
            found.push((start, number));
        }
        if is_prose && start.is_none() {
            start = Some(number);
        }
    }
    found.extend(start.map(|start| (start, lines.len())));
    found
}

fn is_prose(line: &str, goes_on: bool) -> bool {
    let text = line.trim_start();
    let is_code = !goes_on && line.starts_with("    ") && marker(line) == 0;
    !(text.is_empty() || is_code || text.starts_with(['|', '#', '<', '>', '!']))
}

/// The length of what a list's item begins with, the spaces before and behind it included; 0 if it is none.
fn marker(line: &str) -> usize {
    let text = line.trim_start();
    let mark = match text.split(' ').next().unwrap_or_default() {
        mark @ ("-" | "*" | "+") => mark,
        mark if is_number(mark) => mark,
        _ => return 0,
    };
    let behind = &text[mark.len()..];
    line.len() - behind.trim_start().len()
}

/// `1.` or `1)`.
fn is_number(word: &str) -> bool {
    let digits = word.strip_suffix(['.', ')']);
    digits.is_some_and(|digits| !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit()))
}

/// As it is, if it is narrow enough or ends a line on purpose.
fn fill(lines: &[&str], text: &mut String) {
    let is_narrow = lines.iter().all(|line| width(line) <= WIDTH);
    let ends_lines = lines.iter().any(|line| line.ends_with("  ") || line.ends_with('\\'));
    if is_narrow || ends_lines {
        return lines.iter().for_each(|line| push(text, line));
    }
    let indent = lines[0].len() - lines[0].trim_start().len();
    let head = marker(lines[0]).max(indent);
    let joined = lines.iter().map(|line| line.trim()).collect::<Vec<_>>().join(" ");
    let mut line = lines[0][..head].to_owned();
    let mut is_empty = true;
    for word in words(&joined[head - indent..]) {
        if !is_empty && width(&line) + 1 + width(&word) > WIDTH {
            push(text, &line);
            line = " ".repeat(head);
            is_empty = true;
        }
        if !is_empty {
            line.push(' ');
        }
        line.push_str(&word);
        is_empty = false;
    }
    push(text, &line);
}

/// What is not parted: words, code, and links from where their text ends; a word that would mean something at the start of a line
/// goes with the one before.
fn words(text: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    let mut rest = text.trim_start();
    while !rest.is_empty() {
        let (word, after) = rest.split_at(end_of_word(rest));
        match words.last_mut() {
            Some(last) if means_something(word) => {
                last.push(' ');
                last.push_str(word);
            }
            _ => words.push(word.to_owned()),
        }
        rest = after.trim_start();
    }
    words
}

fn end_of_word(text: &str) -> usize {
    let bytes = text.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        match bytes[at] {
            b' ' => return at,
            b'`' => {
                let ticks = bytes[at..].iter().take_while(|byte| **byte == b'`').count();
                let code = &text[at + ticks..];
                // Ticks that nobody closes are only ticks.
                at += ticks + end_of_code(code, ticks).unwrap_or(0);
            }
            _ => at += 1,
        }
    }
    at
}

/// Behind the same number of ticks.
fn end_of_code(text: &str, ticks: usize) -> Option<usize> {
    let mut at = 0;
    while let Some(found) = text[at..].find('`') {
        let run = text[at + found..].bytes().take_while(|byte| *byte == b'`').count();
        at += found + run;
        if run == ticks {
            return Some(at);
        }
    }
    None
}

fn means_something(word: &str) -> bool {
    marker(&format!("{word} ")) > 0
        || word.starts_with(['#', '>', '|', '<', '=', '!'])
        || word.starts_with("```")
        || word.starts_with("~~~")
        || word.bytes().all(|byte| byte == b'-')
}

/// What a page says, without where its lines end.
fn said(page: &str) -> String {
    let mut text = String::new();
    for event in Parser::new_ext(page, Options::ENABLE_TABLES) {
        match event {
            Event::Text(part) => {
                // Several spaces are shown as one.
                for c in part.chars().map(|c| if c.is_whitespace() { ' ' } else { c }) {
                    if c != ' ' || !text.ends_with(' ') {
                        text.push(c);
                    }
                }
            }
            Event::Code(code) => text.push_str(&format!("\u{0}{code}\u{0}")),
            Event::SoftBreak if text.ends_with(' ') => {}
            Event::SoftBreak => text.push(' '),
            other => text.push_str(&format!("\u{0}{other:?}\u{0}")),
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paragraphs_and_items_are_filled_and_the_rest_stays() {
        let line = ["words"; 24].join(" ");
        let page = format!(
            "# {line}\n\n{line}\n\n* {line} and `code that is one word`\n  {line}\n\n| {line} |\n|---|\n\n```\n{line}\n```\n"
        );
        let text = wrapped(&page).unwrap();
        let wide: Vec<&str> = text.lines().filter(|line| width(line) > WIDTH).collect();
        assert_eq!(wide, [&*format!("# {line}"), &*format!("| {line} |"), &*line]);
        assert_eq!(wrapped(&text).unwrap(), text, "a second time changes nothing");
        assert!(text.contains("`code that is one word`") && text.contains("\n  words"), "{text}");
    }

    /// A number, a sign or a quote that is in a sentence never begins a line.
    #[test]
    fn no_word_becomes_a_mark() {
        for mark in ["1.", "-", "+", "#", "> ", "|"] {
            for n in 60..100 {
                let page = format!("{} {mark} {}\n", "x".repeat(n), "y ".repeat(60));
                wrapped(&page).unwrap();
            }
        }
    }

    #[test]
    fn what_is_too_wide_is_named_by_its_line() {
        let page = format!("a\n\n{}\n\n| {0} |\n", "word ".repeat(40));
        assert_eq!(too_wide(&page), [3]);
    }
}
