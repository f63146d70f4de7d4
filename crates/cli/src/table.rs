//! Rows in columns as wide as what is in them.

/// The first row is the head. Text stands left, numbers right.
pub fn lines(rows: &[Vec<String>]) -> String {
    let n_columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |column: usize| {
        rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..n_columns).map(width).collect();
    let mut text = String::new();
    for row in rows {
        let cells: Vec<String> = row
            .iter()
            .zip(&widths)
            .enumerate()
            .map(|(column, (cell, &width))| match column {
                0 => format!("{cell:<width$}"),
                _ => format!("{cell:>width$}"),
            })
            .collect();
        text += cells.join("  ").trim_end();
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    #[test]
    fn columns_are_as_wide_as_their_longest_cell() {
        let rows = [["kernel", "VGPRs"], ["a_long_name", "8"], ["b", "128"]];
        let rows = rows.map(|row| row.map(str::to_owned).to_vec());
        assert_eq!(super::lines(&rows), "kernel       VGPRs\na_long_name      8\nb              128\n");
    }
}
