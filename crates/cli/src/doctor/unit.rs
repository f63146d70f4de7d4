//! A systemd unit: what `systemctl show` says that its processes will have, whether one of them runs or not.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use super::finding::Finding;

const ASKED: &str = "LoadState,MainPID,NeedDaemonReload,Environment,EnvironmentFiles,ExecStart,PrivateDevices,\
                     DevicePolicy,DeviceAllow,ProtectHome,MemoryDenyWriteExecute";

/// What was found, and the process to look at, if there is one.
pub fn check(lib: &Path, name: &str) -> (Vec<Finding>, Option<u32>) {
    let output =
        Command::new("systemctl").arg("show").arg("--property").arg(ASKED).arg("--").arg(name).output();
    let why = match output {
        Ok(output) if output.status.success() => {
            let unit = Unit::read(&String::from_utf8_lossy(&output.stdout));
            return (unit.judge(lib, name), unit.pid());
        }
        Ok(output) => String::from_utf8_lossy(&output.stderr).trim().to_owned(),
        Err(error) => error.to_string(),
    };
    let fault = Finding::fault(
        "unit.unreadable",
        format!("systemctl show {name}: {why}"),
        "what the unit's processes are started with is systemd's to tell",
        "start doctor where systemd runs; or give --pid",
    );
    (vec![fault], None)
}

/// Properties by name. One that systemd has several times (`EnvironmentFiles`) has a line for each.
struct Unit(BTreeMap<String, Vec<String>>);

impl Unit {
    /// systemctl(1): `show` prints `property=value`, a line for each.
    fn read(text: &str) -> Unit {
        let mut properties = BTreeMap::<String, Vec<String>>::new();
        for (name, value) in text.lines().filter_map(|line| line.split_once('=')) {
            properties.entry(name.to_owned()).or_default().push(value.to_owned());
        }
        Unit(properties)
    }

    fn property(&self, name: &str) -> &str {
        self.0.get(name).and_then(|values| values.first()).map_or("", String::as_str)
    }

    /// 0 when none runs.
    fn pid(&self) -> Option<u32> {
        self.property("MainPID").parse().ok().filter(|&pid| pid != 0)
    }

    /// `Environment=`, and behind it what the files say that a unit names (systemd.exec(5): they win).
    fn environment(&self) -> Vec<(String, String)> {
        let mut words = words(self.property("Environment"));
        for file in self.0.get("EnvironmentFiles").into_iter().flatten() {
            // `/etc/default/x (ignore_errors=yes)`
            let path = file.split(" (").next().unwrap_or_default();
            let text = std::fs::read_to_string(path).unwrap_or_default();
            let lines = text.lines().map(str::trim).filter(|line| !line.starts_with(['#', ';']));
            words.extend(lines.map(|line| line.replace(['"', '\''], "")));
        }
        words
            .iter()
            .filter_map(|word| word.split_once('='))
            .map(|(name, value)| (name.into(), value.into()))
            .collect()
    }

    fn judge(&self, lib: &Path, name: &str) -> Vec<Finding> {
        if self.property("LoadState") != "loaded" {
            return vec![Finding::fault(
                "unit.missing",
                format!("systemd's word on {name} is `{}`", self.property("LoadState")),
                "no unit of this name was loaded",
                "systemctl list-units --all; systemctl daemon-reload",
            )];
        }
        let mut findings = Vec::new();
        if self.property("NeedDaemonReload") == "yes" {
            findings.push(Finding::warning(
                "unit.reload",
                format!("the files of {name} were changed since systemd read them"),
                "it is started as they were before",
                format!("systemctl daemon-reload; systemctl restart {name}"),
            ));
        }
        findings.extend(self.hidden(lib, name));
        if self.property("MemoryDenyWriteExecute") == "yes" {
            findings.push(Finding::fault(
                "unit.code",
                format!("{name} has MemoryDenyWriteExecute=yes"),
                "kernels are compiled while the program runs; memory with new code is refused to it",
                format!("systemctl edit {name}: MemoryDenyWriteExecute=no"),
            ));
        }
        findings.push(self.front(lib, name));
        findings
    }

    /// What it is kept from seeing.
    fn hidden(&self, lib: &Path, name: &str) -> Vec<Finding> {
        let mut findings = Vec::new();
        let allows = self.0.get("DeviceAllow").into_iter().flatten().any(|it| it.contains("/dev/kfd"));
        let policy = self.property("DevicePolicy");
        if self.property("PrivateDevices") == "yes" || (["closed", "strict"].contains(&policy) && !allows) {
            findings.push(Finding::warning(
                "unit.devices",
                format!("PrivateDevices= or DevicePolicy= hides /dev/kfd from {name}"),
                "it finds no AMD GPU, only the CPU",
                format!("systemctl edit {name}: PrivateDevices=no, DeviceAllow=/dev/kfd rw, DeviceAllow=char-drm rw"),
            ));
        }
        let is_at_home = ["/home", "/root", "/run/user"].iter().any(|home| lib.starts_with(home));
        if is_at_home && ["yes", "tmpfs"].contains(&self.property("ProtectHome")) {
            findings.push(Finding::fault(
                "unit.home",
                format!("ProtectHome= hides {} from {name}", lib.display()),
                "the loader does not find our libraries there, and the program runs without us",
                "cudaway install --prefix /opt/cudaway",
            ));
        }
        findings
    }

    /// Whether it is started with us in front of it.
    fn front(&self, lib: &Path, name: &str) -> Finding {
        let environment = self.environment();
        let has = |variable: &str, text: &str| {
            environment
                .iter()
                .any(|(name, value)| name == variable && value.split([':', ' ']).any(|it| it.contains(text)))
        };
        let is_by_run = self.property("ExecStart").contains("cudaway run");
        if is_by_run || has("LD_PRELOAD", "libcuda.so") || has("LD_LIBRARY_PATH", &lib.to_string_lossy()) {
            return Finding::fine("unit", format!("{name} is started with our libraries in front of it"));
        }
        Finding::fault(
            "unit.environment",
            format!(
                "{name} is started neither by `cudaway run` nor with LD_PRELOAD or our folder in LD_LIBRARY_PATH"
            ),
            "a service has systemd's environment, not that of a shell",
            format!(
                "systemctl edit {name}: [Service], ExecStart= (empty), ExecStart=cudaway run -- PROGRAM; \
                 systemctl daemon-reload; systemctl restart {name}"
            ),
        )
    }
}

/// Words as systemd prints a list of them: with blanks between, quoted where there are blanks in them, `\` before a character
/// that would mean something.
fn words(text: &str) -> Vec<String> {
    let (mut words, mut word, mut quote) = (Vec::new(), String::new(), None);
    let mut characters = text.chars();
    while let Some(character) = characters.next() {
        match (character, quote) {
            ('\\', _) => word.extend(characters.next()),
            (it, Some(open)) if it == open => quote = None,
            ('"' | '\'', None) => quote = Some(character),
            (' ', None) => words.push(std::mem::take(&mut word)),
            _ => word.push(character),
        }
    }
    words.push(word);
    words.retain(|word| !word.is_empty());
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ids(text: &str) -> Vec<&'static str> {
        let unit = Unit::read(&format!("LoadState=loaded\n{text}"));
        unit.judge(Path::new("/home/me/cudaway/lib"), "x.service").iter().map(|it| it.id).collect()
    }

    #[test]
    fn what_keeps_a_unit_from_us_is_told() {
        assert_eq!(ids("Environment=A=1\nNeedDaemonReload=no\n"), ["unit.environment"]);
        assert_eq!(ids("Environment=A=1 \"LD_PRELOAD=/x/libcuda.so.1 /x/libcudart.so.12\"\n"), ["unit"]);
        assert_eq!(ids("Environment=LD_LIBRARY_PATH=/opt:/home/me/cudaway/lib\n"), ["unit"]);
        let run = "ExecStart={ path=/opt/cudaway/bin/cudaway ; argv[]=/opt/cudaway/bin/cudaway run -- app ; ignore_errors=no }\n";
        assert_eq!(ids(run), ["unit"]);
        assert_eq!(ids(&format!("{run}NeedDaemonReload=yes\n")), ["unit.reload", "unit"]);
        assert_eq!(
            ids(&format!("{run}PrivateDevices=yes\nProtectHome=yes\n")),
            ["unit.devices", "unit.home", "unit"]
        );
        assert_eq!(ids(&format!("{run}DevicePolicy=closed\nDeviceAllow=/dev/kfd rw\n")), ["unit"]);
        assert_eq!(ids(&format!("{run}MemoryDenyWriteExecute=yes\n")), ["unit.code", "unit"]);
        let lost = Unit::read("LoadState=not-found\nMainPID=0\n");
        assert_eq!((lost.judge(Path::new("/"), "x")[0].id, lost.pid()), ("unit.missing", None));
        assert_eq!(Unit::read("MainPID=17\n").pid(), Some(17));
    }

    #[test]
    fn files_of_variables_are_read() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), "# ours\nLD_PRELOAD=\"/x/libcuda.so.1\"\n").unwrap();
        assert_eq!(
            ids(&format!("EnvironmentFiles={} (ignore_errors=yes)\n", file.path().display())),
            ["unit"]
        );
    }

    #[test]
    fn systemds_quotes_are_taken_off() {
        assert_eq!(words(r#"A=1 "B=2 3" C=\"x"#), ["A=1", "B=2 3", "C=\"x"]);
        assert_eq!(words(""), [] as [&str; 0]);
    }
}
